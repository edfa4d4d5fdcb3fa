"""The programs. Those of the paper are written as plain rules, which its Algorithm 1 reads, too."""

from __future__ import annotations

EDGES = ".decl edge(x:number, y:number)\n"

TRANS_RULES = """
path(x, y) :- edge(x, y).
path(x, z) :- edge(x, y), path(y, z).
"""
TRANS = EDGES + ".decl path(x:number, y:number)\n" + TRANS_RULES

SEQ_RULES = """
edge1(x, y) :- edge(x, y).
edge2(x, y) :- edge1(x, y).
edge3(x, y) :- edge2(x, y).
edge4(x, y) :- edge3(x, y).
"""
SEQ = EDGES + ".decl edge1, edge2, edge3, edge4(x:number, y:number)\n" + SEQ_RULES

MAP_RULES = """
connection(z, w) :- nextInWay(x, _y, z), nextInWay(x, _u, w), z != w.
connection(z, w) :- nextInWay(x, _y, z), nextInWay(_u, x, w), z != w.
connection(z, w) :- nextInWay(_x, y, z), nextInWay(y, _u, w), z != w.
connection(z, w) :- nextInWay(_x, y, z), nextInWay(_u, y, w), z != w.
connection(x, z) :- connection(x, y), connection(y, z).
"""
MAP = ".decl nextInWay(node:number, next:number, way:number)\n.decl connection(way:number, other:number)\n" + MAP_RULES

#: who may use what, and which of it is sensitive: each member has as many resources as its group
GRANTS = """
.decl member(user:number, group:number)
.decl grants(group:number, resource:number)
.decl sensitive(resource:number)
.decl can, hot(user:number, resource:number)
can(u, r) :- member(u, g), grants(g, r).
hot(u, r) :- can(u, r), sensitive(r).
"""

#: who may read what: joins and negation, no recursion
FLAT = """
.decl member(user:symbol, role:symbol)
.decl grant(role:symbol, folder:symbol)
.decl suspended(user:symbol)
.decl secret(folder:symbol)
.decl cleared(user:symbol)
.decl reaches, may(user:symbol, folder:symbol)
reaches(u, f) :- member(u, r), grant(r, f).
may(u, f) :- reaches(u, f), !secret(f), !suspended(u).
may(u, f) :- reaches(u, f), secret(f), cleared(u), !suspended(u).
"""

#: the same with groups within groups, and folders that inherit from the folder around them unless they are private
NESTED = """
.decl member(user:symbol, group:symbol)
.decl within(group:symbol, larger:symbol)
.decl grant(group:symbol, folder:symbol)
.decl inside(folder:symbol, outer:symbol)
.decl private(folder:symbol)
.decl belongs(user:symbol, group:symbol)
.decl opens(group:symbol, folder:symbol)
.decl may(user:symbol, folder:symbol)
belongs(u, g) :- member(u, g).
belongs(u, h) :- belongs(u, g), within(g, h).
opens(g, f) :- grant(g, f).
opens(g, f) :- opens(g, o), inside(f, o), !private(f).
may(u, f) :- belongs(u, g), opens(g, f).
"""
