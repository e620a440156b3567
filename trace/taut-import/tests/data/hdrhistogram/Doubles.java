// Writes doubles.hlog with HdrHistogram 2.2.2 itself, and prints what it reads from it, tag by tag:
//   mvn dependency:get -Dartifact=org.hdrhistogram:HdrHistogram:2.2.2 -Dtransitive=false
//   java -cp ~/.m2/repository/org/hdrhistogram/HdrHistogram/2.2.2/HdrHistogram-2.2.2.jar Doubles.java doubles.hlog
// Values are milliseconds. Tags differ in digits and in range; "wide" has zeros, and intervals of shifted ranges.

import java.io.File;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.HdrHistogram.DoubleHistogram;
import org.HdrHistogram.HistogramLogReader;
import org.HdrHistogram.HistogramLogWriter;

class Doubles {
    public static void main(String[] names) throws Exception {
        write(new File(names[0]));
        Map<String, DoubleHistogram> tags = new TreeMap<>();
        HistogramLogReader reader = new HistogramLogReader(new File(names[0]));
        DoubleHistogram one;
        while ((one = (DoubleHistogram) reader.nextIntervalHistogram()) != null) {
            int digits = Math.max(3, one.getNumberOfSignificantValueDigits());
            tags.computeIfAbsent(one.getTag(), tag -> new DoubleHistogram(digits)).add(one);
        }
        for (Map.Entry<String, DoubleHistogram> tag : tags.entrySet()) {
            DoubleHistogram of = tag.getValue();
            System.out.printf("%s %d %s", tag.getKey(), of.getTotalCount(), of.getMinValue());
            for (double percentile : new double[] {50, 90, 99, 99.9}) {
                System.out.print(" " + of.getValueAtPercentile(percentile));
            }
            System.out.println(" " + of.getMaxValue());
        }
    }

    static void write(File file) throws Exception {
        HistogramLogWriter writer = new HistogramLogWriter(file);
        writer.outputLogFormatVersion();
        writer.outputStartTime(1_700_000_000_000L);
        writer.setBaseTime(1_700_000_000_000L);
        writer.outputBaseTime(1_700_000_000_000L);
        writer.outputLegend();
        Random random = new Random(27);
        int[] digits = {2, 3, 4};
        String[] tags = {"two", "three", "wide"};
        for (int interval = 0; interval < 6; interval++) {
            for (int tag = 0; tag < tags.length; tag++) {
                DoubleHistogram of = new DoubleHistogram(digits[tag]);
                for (int n = 0; n < 2000; n++) {
                    double spread = tag == 2 ? 1.5 + interval / 2.0 : 0.5;
                    double value = 0.2 * Math.exp(spread * random.nextGaussian());
                    of.recordValue(tag == 2 && n % 50 == 0 ? 0.0 : value);
                }
                of.setTag(tags[tag]);
                of.setStartTimeStamp(1_700_000_000_000L + interval * 1000);
                of.setEndTimeStamp(1_700_000_001_000L + interval * 1000);
                writer.outputIntervalHistogram(of);
            }
        }
        writer.close();
    }
}
