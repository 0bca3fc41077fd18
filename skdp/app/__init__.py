"""The commands of ``python -m skdp`` and of the script ``skdp``.

===========  =====================================================================================
``cli``      commands and options, and which function runs each
``csv``      the file of records: CSV or Parquet. Names and types first; values when asked for
``domains``  ``domain from-schema | check``; files of domains
``outputs``  files written whole or not at all; what a command is doing, without a record
``release``  ``plan`` and ``release``
``views``    ``info``, ``query``, ``group-by``, ``sample``, ``page``, ``verify``, others
``wizard``   ``wizard``: a release by filling in pages in a browser
===========  =====================================================================================
"""
