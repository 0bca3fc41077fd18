"""The commands of ``python -m skdp`` and of the script ``skdp``.

==============  ===================================================================================
``program``     runs one command; errors become messages and exit codes
``parser``      commands and options, and which function runs each
``release``     ``release``, and what a killed one has measured
``views``       ``info``, ``query``, ``group-by``, ``sample``, ``report``, ``verify``
``plans``       ``plan``
``domains``     ``domain skeleton | from-schema | check | describe | diff``
``describe``    a domain in words, tables of text
``others``      ``ledger``, ``audit``, ``demo``
``methods``     names of the synthesizers
``workloads``   what a release of marginals should serve
``sources``     the file of records: CSV or Parquet
``csv_lines``   records of a CSV file, each line parsed by itself
``outputs``     files that are written whole or not at all
``declared``    files of domains and of structure
``progress``    what a command is doing, on standard error
==============  ===================================================================================
"""
