r"""The Spark engine: the algebra of fact sets over files of facts in buckets.

A fact belongs to one *bucket*, by a hash of its values; every set keeps the facts of a bucket in files of their own. So anything that is
said with ∪, ∩ and \ is computed bucket by bucket, and no set is ever moved. Rules are evaluated by tasks that run the columns engine: of one body
literal a task reads the facts of its own bucket only, of all others all facts; heads travel to their bucket as packed columns, not
row by row, and are there freed of what is known already. One job does all of that.
"""
