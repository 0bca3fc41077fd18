"""``wizard``: a release by filling in pages in a browser, on this machine alone.

==========  ======================================================================================
``steps``   what the pages ask, in order, and what is done; nothing is charged before the last;
            columns, rules and questions as the fields of a form; messages in the words of pages
``server``  the loopback address: token, hosts, one wizard for each ledger
``pages``   the text: a template for each step, and one with a macro for each kind of field
==========  ======================================================================================
"""
