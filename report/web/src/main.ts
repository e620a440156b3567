// What one can point at in a page, which is complete without this: charts, lanes, and a flame graph by itself.

import { drawCharts } from "./charts";
import { openPictures } from "./dom";
import { drawLanes } from "./lanes";

drawCharts();
drawLanes();
openPictures();
