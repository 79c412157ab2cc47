"""Shapes of trees of drafts: the parent of each node, -1 for the root."""

SHAPES = {
    "chain": (-1, 0, 1),
    "two children": (-1, -1),
    "three children": (-1, -1, -1),
    "two by two": (-1, -1, 0, 0, 1, 1),
    "ragged": (-1, -1, 1, -1, 2),
}
