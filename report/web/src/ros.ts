// Topics, callbacks and executors of a recording with ROS 2 events.

import type { Report } from "./data";
import { section, table } from "./dom";

export function rosSections(report: Report): HTMLElement[] {
  const titles = [...new Set(report.ros_tables.map((of) => of.section))];
  return titles.map((title) => section(title,
    ...report.ros_tables.filter((of) => of.section === title).map((of) => table(of.caption, of.header, of.rows))));
}
