"""Evaluates arithmetic that is written out: numbers and operators, without names."""

import ast
import operator
import re
from collections.abc import Callable

__all__ = ["calculated"]

_WRITTEN = re.compile(r"[\d\sxXa-fA-F+*/%()<>&|^~#-]{1,200}$")
_SIGNS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_MOST_BITS = 64


def calculated(text: str) -> int | None:
    """The number; None if it is not written out, or exceeds a shell's range."""
    if not _WRITTEN.match(text) or "**" in text or not any(map(str.isdigit, text)):
        return None
    try:
        return _value(ast.parse(text.strip().replace("/", "//"), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, OverflowError, MemoryError, RecursionError):
        return None


def _value(node: ast.expr) -> int:
    match node:
        case ast.Constant(value=int() as number) if number.bit_length() <= _MOST_BITS:
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _SIGNS:
            first, second = _value(left), _value(right)
            if isinstance(sign, ast.LShift) and not 0 <= second < _MOST_BITS:
                raise OverflowError
            number = _SIGNS[type(sign)](first, second)
            if number.bit_length() <= _MOST_BITS:
                return number
    raise ValueError
