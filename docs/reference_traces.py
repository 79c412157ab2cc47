"""The page of the trace format, for `generate_reference.py`."""

import msgspec
from docstrings import rendered
from tables import NOTE, field_table, table, type_name

from tokenlaw.properties import trace_operations
from tokenlaw.properties.trace import SCHEMA, Trace
from tokenlaw.spec import contracts


def traces() -> str:
    """The trace format: a configuration, and every operation with its fields."""
    operations = [
        one
        for one in vars(trace_operations).values()
        if isinstance(one, type)
        and issubclass(one, msgspec.Struct)
        and one.__module__ == trace_operations.__name__
    ]
    rows = [
        (f"`{one.__struct_config__.tag}`", operation_fields(one), " ".join(rendered(one).split()))
        for one in operations
    ]
    return f"""# Trace format

{NOTE}
A trace is a JSON object with `schema` (`"{SCHEMA}"`), `contract` (`"{contracts.BLOCK_MANAGER}"` or
`"{contracts.KV_STORE}"`), `config` and `operations`. Unknown fields are refused. An operation is an object
whose `op` names it; they are carried out in the order of `operations`. `sequence` is the place of a live
sequence, modulo their number, in order of creation; an operation that needs one does nothing where there is
none.

{table(("op", "fields", "what"), rows)}

## config

{rendered(contracts.CacheConfig)}

{field_table(contracts.CacheConfig)}

## An example

{rendered(Trace)}

```json unrun="written by the code that reads it"
{msgspec.json.format(msgspec.json.encode(example()), indent=2).decode()}
```

Other counterexamples (cases of attention, laws, sessions) have schemas of their own, `tokenlaw.attention/1`
and so on. They are written by audits and read by `tokenlaw replay`.
"""


def example() -> Trace:
    """A fork that diverges."""
    tags = trace_operations
    return Trace((tags.New((7, 8, 9)), tags.Fork(0), tags.Append(1, (5,)), tags.Append(0, (6,))))


def operation_fields(operation: type[msgspec.Struct]) -> str:
    """Names and types; what has a default may be left out."""
    told = []
    for field in msgspec.structs.fields(operation):
        optional = "" if field.required else ", optional"
        told.append(f"`{field.name}` ({_JSON.get(type_name(field.type), type_name(field.type))}{optional})")
    return ", ".join(told) or "none"


_JSON = {"tuple[int, ...]": "list of int", "str": "string", "int | None": "int or null"}
