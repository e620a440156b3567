"""Marks around a stretch of code: work, functions, coroutines."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from functools import wraps
from types import TracebackType
from typing import Any, TypeVar, cast, overload

from taut._taut import begin, end, stamp

Function = TypeVar("Function", bound=Callable[..., Any])


class work:
    """Work that is not a message's, from here to the end of the block: `with taut.work("plan"): …`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        begin(self.name)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        end(self.name)


@overload
def traced(name: Function) -> Function: ...
@overload
def traced(
    name: str | None = None, *, message: str | Callable[..., int] | None = None
) -> Callable[[Function], Function]: ...
def traced(name: Any = None, *, message: str | Callable[..., int] | None = None) -> Any:
    """Marks what a function does as work: `@taut.traced` or `@taut.traced("plan")`; its name is the default.

    Of a coroutine, a generator or an asynchronous generator, what it does itself is marked, step by step: while it waits,
    its thread may work for others.

    With `message` a call handles a message, and is stamped instead: at NAME.begin, and, unless it raises, at NAME.end.
    `message` names the parameter that is the message's id, or makes the id out of the call's arguments. Waiting is then
    a part of it. Generators handle no single message.
    """
    if callable(name):
        return _traced(name, None, None)
    return lambda function: _traced(function, name, message)


def _traced(function: Callable[..., Any], name: str | None, message: str | Callable[..., int] | None) -> Any:
    import inspect

    name = name or function.__qualname__
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        if message is not None:
            raise TypeError(f"{name}: a generator handles no single message; stamp within it")
        of_generator = _async_generator if inspect.isasyncgenfunction(function) else _generator
        return of_generator(function, name)
    if message is not None:
        id_of = message if callable(message) else _argument(inspect.signature(function), name, message)
        points = f"{name}.begin", f"{name}.end"
        return (_stamped_coroutine if inspect.iscoroutinefunction(function) else _stamped)(function, points, id_of)
    return (_coroutine if inspect.iscoroutinefunction(function) else _function)(function, name)


def _argument(signature: Any, function: str, parameter: str) -> Callable[..., int]:
    """Finds an argument by its parameter's name, however it is given."""
    if parameter not in signature.parameters:
        raise TypeError(
            f"{function} has no parameter {parameter!r}; it has {', '.join(signature.parameters) or 'none'}"
        )
    place = list(signature.parameters).index(parameter)

    def of(*args: Any, **kwargs: Any) -> int:
        given = args[place] if place < len(args) else kwargs.get(parameter, signature.parameters[parameter].default)
        return cast(int, given)

    return of


def _function(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(function)
    def traced(*args: Any, **kwargs: Any) -> Any:
        begin(name)
        try:
            return function(*args, **kwargs)
        finally:
            end(name)

    return traced


def _stamped(function: Callable[..., Any], points: tuple[str, str], id_of: Callable[..., int]) -> Callable[..., Any]:
    before, after = points

    @wraps(function)
    def traced(*args: Any, **kwargs: Any) -> Any:
        message = id_of(*args, **kwargs)
        stamp(before, message)
        result = function(*args, **kwargs)
        stamp(after, message)
        return result

    return traced


def _coroutine(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(function)
    async def traced(*args: Any, **kwargs: Any) -> Any:
        return await _Steps(function(*args, **kwargs), name)

    return traced


def _stamped_coroutine(
    function: Callable[..., Any], points: tuple[str, str], id_of: Callable[..., int]
) -> Callable[..., Any]:
    before, after = points

    @wraps(function)
    async def traced(*args: Any, **kwargs: Any) -> Any:
        message = id_of(*args, **kwargs)
        stamp(before, message)
        result = await function(*args, **kwargs)
        stamp(after, message)
        return result

    return traced


def _generator(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(function)
    def traced(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        return (yield from _Steps(function(*args, **kwargs), name))

    return traced


def _async_generator(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(function)
    async def traced(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        inner = function(*args, **kwargs)
        step = inner.asend(None)
        try:
            while True:
                value = await _Steps(step, name)
                try:
                    sent = yield value
                except GeneratorExit:
                    raise
                except BaseException as error:
                    step = inner.athrow(error)
                else:
                    step = inner.asend(sent)
        except StopAsyncIteration:
            return
        finally:
            await inner.aclose()

    return traced


class _Steps(Awaitable[Any]):
    """Drives a coroutine or a generator; work begins and ends with each of its steps."""

    __slots__ = ("_inner", "_name")

    def __init__(self, inner: Any, name: str) -> None:
        self._inner = inner
        self._name = name

    def __await__(self) -> Any:
        return self

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: Any) -> Any:
        begin(self._name)
        try:
            return self._inner.send(value)
        finally:
            end(self._name)

    def throw(self, *error: Any) -> Any:
        begin(self._name)
        try:
            return self._inner.throw(*error)
        finally:
            end(self._name)

    def close(self) -> None:
        begin(self._name)
        try:
            self._inner.close()
        finally:
            end(self._name)
