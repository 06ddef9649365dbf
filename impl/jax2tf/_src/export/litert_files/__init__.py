"""Edits LiteRT files: weights of fewer bits, and ops of integers.

file.py          a file while it is edited; buffers.py packs it
tensor_names.py  what its tensors are called
weights.py       arrays of 4, 8 or 16 bits in the place of float32
lookups.py       tables whose rows are looked up
integers.py      ops of integers, by litert-quantizer. Three modules mend what it leaves wrong:
                 islands.py (ops that stay float32), biases.py, ends.py (outputs)
"""
