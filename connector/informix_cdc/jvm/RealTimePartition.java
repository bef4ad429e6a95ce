package informixcdc;

import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;

/**
 * All rows after an offset, as they come, until Spark ends the batch.
 *
 * @param source the name of the driver's endpoint that knows the ranges
 */
record RealTimePartition(String source, String start) implements InputPartition {

  /**
   * Where a batch has ended.
   *
   * @param start an offset of the Python source, at which a range begins
   * @param rows how many of the range's rows are delivered
   */
  record End(String start, long rows) implements PartitionOffset {}
}
