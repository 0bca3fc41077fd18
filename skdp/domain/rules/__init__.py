"""Rules between columns: as they are declared, compiled, and kept by drawn rows.

===============  ===================================================================================
``declared``     what is known about how columns depend on each other, also from plain data
``structure``    `Structure`: rules compiled into derived columns and empty cells; rows under rules
``compiling``    what rules may be, how they follow from each other, and which contradict
``numberline``   numbers for rules: values of each code, draws within bounds
===============  ===================================================================================
"""
