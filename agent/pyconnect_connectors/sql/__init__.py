"""SqlSource and SqlSink: rows of SQL tables to topics and back, on SQLAlchemy 2 (extra `sql`).

Setting names and modes are those of Confluent's JDBC connectors where the meaning is the same.
"""
