// jHiccup's published definition as a loop of its own (github.com/giltene/jHiccup is not in Maven's repository): sleep 1 ms, take the time
// since the last wake less the shortest so far, into the recorder that jHiccup uses, with its settings and its correction.
// java -cp HdrHistogram-2.2.2.jar Hiccup.java SECONDS; prints n p50 p90 p99 p99.9 max, ns.

import java.util.concurrent.TimeUnit;
import org.HdrHistogram.Histogram;

public class Hiccup {
    static final long INTERVAL_NS = 1_000_000;

    public static void main(String[] arguments) throws InterruptedException {
        Histogram histogram = new Histogram(20_000, TimeUnit.HOURS.toNanos(1), 2);
        long end = System.nanoTime() + (long) (Double.parseDouble(arguments[0]) * 1e9);
        long shortest = Long.MAX_VALUE;
        long before = System.nanoTime();
        // The first delta has the way into the loop in it, and no wake before it.
        boolean isFirst = true;
        while (before < end) {
            TimeUnit.NANOSECONDS.sleep(INTERVAL_NS);
            long after = System.nanoTime();
            long delta = after - before;
            before = after;
            if (isFirst) {
                isFirst = false;
                continue;
            }
            shortest = Math.min(shortest, delta);
            histogram.recordValueWithExpectedInterval(delta - shortest, INTERVAL_NS);
        }
        System.out.print(histogram.getTotalCount());
        for (double percentile : new double[] {50, 90, 99, 99.9, 100}) {
            System.out.print(" " + histogram.getValueAtPercentile(percentile));
        }
        System.out.println();
    }
}
