"""Libraries of others as candidates: `peer:torchao` and more, each where it is installed."""

import importlib

from mor_ref.argument_checks import known_name
from mor_ref.verify.candidates.peers.peer import Peer
from mor_ref.verify.candidates.python_function import PythonFunction

# The names after `peer:`, and the modules of their adapters.
PEERS = {
    "torchao": "torchao",
    "modelopt": "modelopt",
    "compressed-tensors": "compressed_tensors",
    "transformer-engine": "transformer_engine",
    "gguf": "gguf",
    "microxcaling": "microxcaling",
    "quark": "quark",
    "mmasim": "mmasim",
}


def peer_named(name: str) -> Peer:
    """Return the adapter of a library, which need not be installed."""
    module = PEERS[known_name("peer", name, PEERS)]
    peer: Peer = importlib.import_module(f"{__name__}.{module}").PEER
    return peer


def candidate_of(name: str) -> PythonFunction:
    """Return a library as a candidate, or refuse one that cannot run here."""
    peer = peer_named(name)
    peer.check()
    return PythonFunction(f"peer:{name}", peer.answer)
