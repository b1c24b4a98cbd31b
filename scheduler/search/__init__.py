"""Finds a place for a gang: all of its minimum or nothing, as near together as can be. Pure.

`place` reads the request into a tree of parts (`tree`), searches with as many wishes kept as can be
(`wishing`), first greedily and then exactly where that is small (`searching`, `filling`, `exact`),
in cells chosen by bounds (`choosing`), and then adds extras one by one (`adding`). Nothing is taken
of the Room before all is decided.
"""
