"""The commands of ``python -m skdp`` and of the script ``skdp``.

==============  ===================================================================================
``parser``      commands and options, and which function runs each
``release``     ``release``, and what a killed one has measured
``views``       ``info``, ``query``, ``group-by``, ``sample``, ``page``, ``verify``, others
``plans``       ``plan``
``wizard``      ``wizard``: a release by filling in pages in a browser
``domains``     ``domain skeleton | from-schema | check | describe | diff``; files of domains
``methods``     names of the synthesizers, and what a release of marginals should serve
``sources``     the file of records: CSV, each line parsed by itself, or Parquet
``outputs``     files written whole or not at all; what a command is doing, without a record
==============  ===================================================================================
"""
