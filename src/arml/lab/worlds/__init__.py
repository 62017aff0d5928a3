"""Small problems, made from real data that ship inside packages, in which it is known which auxiliary tasks help.

- ``world``: what a world is
- ``pools``: real examples, divided once between the two tiers
- ``division``: which examples are labelled, tested, or free for auxiliary tasks
- ``image_worlds``, ``table_worlds``: examples and answers of every task
- ``recipes``, ``tier_dev``, ``tier_test``: the worlds
- ``own_worlds``: worlds from a user's own table or folders
- ``world_batches``: endless batches of a world
"""

from arml.lab.worlds.tier_dev import DEV
from arml.lab.worlds.tier_test import TEST
from arml.lab.worlds.world import World

WORLDS: dict[str, World] = {world.name: world for world in (*DEV, *TEST)}
"""All worlds by name."""
