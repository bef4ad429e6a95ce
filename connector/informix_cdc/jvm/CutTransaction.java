package informixcdc;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.types.StructType;

/**
 * The transaction within which a batch in real-time mode has ended: all before it are delivered, and
 * its first rows.
 *
 * <p>Rule: it is read from the segments, which have the commit of each row; delivered rows need not.
 */
record CutTransaction(long commit, long rows) {

  /** Return the transaction of the last of a range's delivered rows, of which there is at least one. */
  static CutTransaction after(long delivered, InputPartition[] range, StructType rows)
      throws IOException {
    List<SegmentRange> begun = begun(delivered, range);
    CutTransaction cut = null;
    for (int at = begun.size() - 1; at >= 0; at--) {
      long[] commits = commits(begun.get(at), rows);
      int same = commits.length;
      long commit = cut == null ? commits[same - 1] : cut.commit;
      while (same > 0 && commits[same - 1] == commit) {
        same--;
      }
      long count = commits.length - same;
      cut = new CutTransaction(commit, cut == null ? count : cut.rows + count);
      if (same > 0) {
        break; // the rows before are of another transaction
      }
    }
    return cut;
  }

  /** Return this one, with the rows that the batches before have delivered of it. */
  CutTransaction continuing(CutTransaction before) {
    boolean isSame = before != null && before.commit == commit;
    return isSame ? new CutTransaction(commit, before.rows + rows) : this;
  }

  private static List<SegmentRange> begun(long delivered, InputPartition[] range) throws IOException {
    List<SegmentRange> begun = new ArrayList<>();
    long left = delivered;
    for (InputPartition partition : range) {
      for (SegmentRange segment : SegmentRange.of(partition)) {
        if (left > 0) {
          begun.add(segment.first(left));
          left -= segment.end() - segment.first();
        }
      }
    }
    return begun;
  }

  private static long[] commits(SegmentRange segment, StructType rows) throws IOException {
    segment.requireSound();
    long[] found = new long[(int) (segment.end() - segment.first())];
    int at = 0;
    try (SegmentReader reader = new SegmentReader(segment, rows)) {
      while (reader.next()) {
        long[] some = reader.commits();
        System.arraycopy(some, 0, found, at, some.length);
        at += some.length;
      }
    }
    return found;
  }
}
