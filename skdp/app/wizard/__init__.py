"""``wizard``: a release by filling in pages in a browser, on this machine alone.

============  =====================================================================================
``steps``     what the pages ask, in order, and what is done; nothing is charged before the last
``forms``     columns, rules and questions as the fields of a form, and the bars to expect
``commands``  the commands of the shell that do the same, which are also those that are run
``server``    the loopback address: token, hosts, one wizard for each ledger
============  =====================================================================================
"""
