"""Tables: files and dataframes of any kind as columns with known roles, whole, by ranges of users, or on Spark."""

from cranfield.tables.columns import MissingColumnError, Role, find_columns, place_by_name
from cranfield.tables.files import FORMATS, check_format, contents, file_and_member, is_parquet, unpacked, write_table
from cranfield.tables.frames import FrameTable, ParquetTable, is_parquet_folder
from cranfield.tables.layout import Layout, as_utf8, is_number, records
from cranfield.tables.ranges import UserRanges
from cranfield.tables.spark import (
    RowTable,
    Schema,
    SparkTable,
    as_polars,
    by_user,
    is_spark,
    named_by_ids,
    quoted,
    spark_session,
    user_blocks,
)
from cranfield.tables.text import TextTable, refuse_text_options
from cranfield.tables.values import ColumnTable, Fault, day, ratings, seconds
from cranfield.tables.vocabulary import UNKNOWN, Vocabulary, as_series, check_exact

__all__ = [
    "FORMATS",
    "UNKNOWN",
    "ColumnTable",
    "Fault",
    "FrameTable",
    "Layout",
    "MissingColumnError",
    "ParquetTable",
    "Role",
    "RowTable",
    "Schema",
    "SparkTable",
    "TextTable",
    "UserRanges",
    "Vocabulary",
    "as_polars",
    "as_series",
    "as_utf8",
    "by_user",
    "check_exact",
    "check_format",
    "contents",
    "day",
    "file_and_member",
    "find_columns",
    "is_number",
    "is_parquet",
    "is_parquet_folder",
    "is_spark",
    "named_by_ids",
    "place_by_name",
    "quoted",
    "ratings",
    "records",
    "refuse_text_options",
    "seconds",
    "spark_session",
    "unpacked",
    "user_blocks",
    "write_table",
]
