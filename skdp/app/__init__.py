"""The commands of ``python -m skdp`` and of the script ``skdp``.

===========  =====================================================================================
``cli``      commands and options, their help, and which function runs each
``csv``      the file of records: names of columns first, values when asked for
``release``  ``domain check``, ``plan`` and ``release``; files of domains; errors without a value
``views``    ``info``, ``query``, ``sample``, ``page``; ``ledger`` and ``verify`` for an officer
``wizard``   ``wizard``: a release by filling in pages in a browser
===========  =====================================================================================
"""
