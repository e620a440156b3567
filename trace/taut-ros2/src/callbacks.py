"""Reports begin and end of rclpy's callbacks. Run by libtaut_ros2.so at rcl_init, with begin, end and add (python.h).

rclpy keeps a callback as an attribute of its subscription, timer or service, and every executor reads it there, the
events executor in C++ too. So the attribute's setter puts a wrapper in its place, which the entity owns.
"""

# ruff: noqa: F821 (begin, end and add are given)
import contextlib
import functools
import inspect
import itertools
import sys

# RosObjectKind of trace/taut-recording/src/records.rs.
SUBSCRIPTION_OBJECT, SUBSCRIPTION_CALLBACK, SERVICE_CALLBACK = 5, 6, 8
TIMER_CALLBACK, TIMER_NODE, CALLBACK_SYMBOL = 11, 12, 13
# No addresses: numbers that are not used again.
handles = itertools.count((1 << 62) + 1)


class Steps:
    """A coroutine whose every step is reported: while it is suspended its thread does other things."""

    def __init__(self, coroutine, handle, begin=begin, end=end):
        self.coroutine, self.handle, self.begin, self.end = coroutine, handle, begin, end

    def __await__(self):
        step, argument = self.coroutine.send, None
        while True:
            self.begin(self.handle)
            try:
                awaited = step(argument)
            except StopIteration as done:
                return done.value
            finally:
                self.end(self.handle)
            try:
                step, argument = self.coroutine.send, (yield awaited)
            except GeneratorExit:
                self.coroutine.close()
                raise
            except BaseException as error:
                step, argument = self.coroutine.throw, error


def name_of(callback):
    while isinstance(callback, functools.partial):
        callback = callback.func
    name = getattr(callback, "__qualname__", None) or type(callback).__qualname__
    module = getattr(callback, "__module__", None) or type(callback).__module__
    return f"{module}.{name}"[:500]


def wrapper_of(callback, handle, begin=begin, end=end):
    if inspect.iscoroutinefunction(callback):

        async def run(*args, **kwargs):
            return await Steps(callback(*args, **kwargs), handle)

    else:

        def run(*args, **kwargs):
            begin(handle)
            try:
                return callback(*args, **kwargs)
            finally:
                end(handle)

    functools.update_wrapper(run, callback)
    with contextlib.suppress(TypeError, ValueError):
        # rclpy asks for it at each call of a timer, and builds it each time where it is not kept.
        run.__signature__ = inspect.signature(callback)
    run._taut_callback = callback
    return run


def wrapped(entity, callback, declare, add=add):
    """What the entity keeps as its callback; the callback itself if anything is not as expected."""
    if callback is None:
        return None
    callback = getattr(callback, "_taut_callback", callback)
    try:
        handle = next(handles)
        run = wrapper_of(callback, handle)
        declare(entity, handle)
        add(CALLBACK_SYMBOL, handle, 0, name_of(callback))
        return run
    except Exception:
        return callback


def declare_subscription(entity, handle, add=add):
    middle = next(handles)
    add(SUBSCRIPTION_OBJECT, middle, entity.handle.pointer, None)
    add(SUBSCRIPTION_CALLBACK, handle, middle, None)


def declare_service(entity, handle, add=add):
    add(SERVICE_CALLBACK, handle, entity.handle.pointer, None)


def declare_timer(entity, handle, add=add):
    add(TIMER_CALLBACK, handle, entity.handle.pointer, None)


def wrap_attribute(owner, declare):
    """Puts a property in the place of `callback`, which is one already (Subscription from Iron on) or a plain attribute."""
    owner = next((each for each in owner.__mro__ if isinstance(each.__dict__.get("callback"), property)), owner)
    there = owner.__dict__.get("callback")
    if there is None:
        owner.callback = property(
            lambda entity: entity.__dict__["callback"],
            lambda entity, value: entity.__dict__.__setitem__("callback", wrapped(entity, value, declare)),
        )
    elif isinstance(there, property) and there.fset is not None:
        owner.callback = there.setter(lambda entity, value: there.fset(entity, wrapped(entity, value, declare)))


def link_timers(node_class, add=add):
    create_timer = node_class.create_timer

    @functools.wraps(create_timer)
    def create_and_link(self, *args, **kwargs):
        timer = create_timer(self, *args, **kwargs)
        with contextlib.suppress(Exception):
            add(TIMER_NODE, timer.handle.pointer, self.handle.pointer, None)
        return timer

    node_class.create_timer = create_and_link


def install():
    import rclpy.node
    import rclpy.service
    import rclpy.subscription
    import rclpy.timer

    wrap_attribute(rclpy.subscription.Subscription, declare_subscription)
    wrap_attribute(rclpy.service.Service, declare_service)
    wrap_attribute(rclpy.timer.Timer, declare_timer)
    link_timers(rclpy.node.Node)


if "rclpy" in sys.modules:
    install()
