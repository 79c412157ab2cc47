"""Operators that compute with lazy tensors: what they give is lazy again, or constant."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tokenlaw.stats.enumeration.forms import Floats, Forms, NoFormError, leave_out
from tokenlaw.stats.enumeration.lazy_memory import take_over
from tokenlaw.stats.enumeration.lazy_tensors import (
    LazyTensor,
    handles_of,
    name_of,
    operators,
    outs_of,
    refuse,
)
from tokenlaw.stats.enumeration.noise_book import NoiseBook

aten = torch.ops.aten
PRECISE = (torch.float32, torch.float64)
"""Dtypes in which a random number is close enough to a real one."""


def forms_of(book: NoiseBook, value: Any) -> Forms:
    """Numbers of a lazy tensor; of an ordinary one, or a plain number, as constants."""
    if isinstance(value, LazyTensor):
        return book.read(handles_of(value).cpu().numpy())
    if isinstance(value, torch.Tensor):
        return Forms.constants(copied(value))
    return Forms.constants(np.float64(value))


def copied(tensor: torch.Tensor) -> Floats:
    """Numbers of an ordinary tensor; not its memory, which would count as shared from then on."""
    return tensor.detach().to("cpu", torch.float64, copy=True).numpy()


def to_tensor(values: Any, like: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Decided numbers as an ordinary tensor on the device of another."""
    return torch.from_numpy(np.array(values)).to(device=like.device, dtype=dtype)


def lazily(book: NoiseBook, forms: Forms, like: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The numbers as a tensor: an ordinary one if all of them are constant."""
    if not forms.random.any():
        return to_tensor(forms.shift, like, dtype)
    return LazyTensor.of(book, torch.from_numpy(book.write(forms)).to(like.device), dtype)


def write(book: NoiseBook, target: torch.Tensor, forms: Forms) -> torch.Tensor:
    """Write numbers into a tensor that is there; it becomes lazy where it is an ordinary one."""
    if target.dtype not in PRECISE:
        refuse(book, "writing random numbers into a tensor", f"of {target.dtype} rounds them")
    lazy = target if isinstance(target, LazyTensor) else take_over(book, target)
    lazy.run = book.tape.run
    lazy.handles.copy_(torch.from_numpy(book.write(forms.broadcast(tuple(target.shape)))))
    return target


def result_type(one: Any, other: Any) -> torch.dtype:
    """The dtype that an operator of two operands gives."""
    return torch.result_type(_stand_in(one), _stand_in(other))


def _stand_in(value: Any) -> Any:
    if isinstance(value, LazyTensor):
        return torch.empty((1,) * min(value.dim(), 1), dtype=value.dtype)
    return value


Binary = Callable[[Forms, Floats], Forms]


def two(forward: Binary, backward: Binary) -> Callable[[Forms, Forms], Forms]:
    """An operation of two arrays from its operations with a known second, or first, operand."""

    def apply(first: Forms, second: Forms) -> Forms:
        shape = np.broadcast_shapes(first.kind.shape, second.kind.shape)
        first, second = first.broadcast(shape), second.broadcast(shape)
        if not second.random.any():
            return forward(first, second.shift)
        if not first.random.any():
            return backward(second, first.shift)
        if (first.random & second.random).any():
            raise NoFormError("combines two random numbers")
        return forward(first, second.shift).where(~second.random, backward(second, first.shift))

    return apply


def _minus(forms: Forms, values: Floats) -> Forms:
    return forms.plus(-values)


def _subtracted_from(forms: Forms, values: Floats) -> Forms:
    return forms.times(np.float64(-1.0)).plus(values)


def _dividing(forms: Forms, values: Floats) -> Forms:
    return forms.to_power(np.float64(-1.0)).times(values)


def _exponent_of(forms: Forms, values: Floats) -> Forms:
    """values ** forms"""
    return forms.times(np.log(values)).exp()


ADD = two(Forms.plus, Forms.plus)
SUBTRACT = two(_minus, _subtracted_from)
MULTIPLY = two(Forms.times, Forms.times)
DIVIDE = two(Forms.divided, _dividing)
POWER = two(Forms.to_power, _exponent_of)


def _log_of_base(base: float) -> Callable[[Forms], Forms]:
    return lambda forms: forms.log().divided(np.float64(math.log(base)))


def _power_of(exponent: float) -> Callable[[Forms], Forms]:
    return lambda forms: forms.to_power(np.float64(exponent))


UNARY: dict[str, Callable[[Forms], Forms]] = {
    "neg": lambda forms: forms.times(np.float64(-1.0)),
    "log": Forms.log,
    "log1p": lambda forms: forms.plus(np.float64(1.0)).log(),
    "log2": _log_of_base(2.0),
    "log10": _log_of_base(10.0),
    "exp": Forms.exp,
    "expm1": lambda forms: forms.exp().plus(np.float64(-1.0)),
    "reciprocal": _power_of(-1.0),
    "sqrt": _power_of(0.5),
    "rsqrt": _power_of(-0.5),
}

BINARY = {"add": ADD, "sub": SUBTRACT, "mul": MULTIPLY, "div": DIVIDE, "pow": POWER}


def _unary(book: NoiseBook, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = function._schema.name.removeprefix("aten::")
    forms = calculated(book, function, lambda: UNARY[name.rstrip("_")](forms_of(book, args[0])))
    if name.endswith("_"):
        return write(book, args[0], forms)
    return lazily(book, forms, args[0], args[0].dtype)


def _binary(book: NoiseBook, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = function._schema.name.removeprefix("aten::")
    first, second = args[0], args[1]
    if name == "rsub":
        first, second, name = second, first, "sub"
    dtype = result_type(first, second)
    one, other = forms_of(book, first), forms_of(book, second)
    scale = args[2] if len(args) > 2 else kwargs.get("alpha", 1)
    if scale != 1:
        other = other.times(np.float64(scale))
    forms = calculated(book, function, lambda: BINARY[name.rstrip("_")](one, other))
    if name.endswith("_"):
        return write(book, args[0], forms)
    return lazily(book, forms, a_tensor(args), dtype)


def calculated(book: NoiseBook, function: Any, calculate: Callable[[], Any]) -> Any:
    """The result, or a refusal that names the operator. Guards that it leaves out are counted."""
    counting = leave_out.set(book.leave_out)
    try:
        with np.errstate(all="ignore"):
            return calculate()
    except NoFormError as error:
        return refuse(book, name_of(function), str(error))
    finally:
        leave_out.reset(counting)


def a_tensor(args: tuple[Any, ...]) -> torch.Tensor:
    """The argument that says on which device results belong: that with the most dimensions."""
    tensors = [part for part in args if isinstance(part, torch.Tensor)]
    return max(tensors, key=lambda part: part.dim())


def register(names: str, handler: Any) -> None:
    """Let a handler do all overloads of operators that this torch has, but for those with ``out``."""
    for name in names.split():
        packet = getattr(aten, name, None)
        for overload in [] if packet is None else packet.overloads():
            if not outs_of(getattr(packet, overload)):
                operators[getattr(packet, overload)] = handler


for _name in UNARY:
    register(f"{_name} {_name}_", _unary)
register("add add_ sub sub_ rsub mul mul_ div div_ pow pow_", _binary)
for _name in ("div", "div_"):
    for _overload in ("Tensor_mode", "Scalar_mode"):
        operators.pop(getattr(getattr(aten, _name), _overload), None)
