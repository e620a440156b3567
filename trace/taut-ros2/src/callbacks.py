"""Reports begin and end of rclpy's callbacks. Run by libtaut_ros2.so at rcl_init, with begin, end, resume, suspend and add (python.h).

rclpy keeps a callback as an attribute of its subscription, timer or service, and every executor reads it there, the
events executor in C++ too. So the attribute's setter puts a wrapper in its place, which the entity owns.
"""

# ruff: noqa: F821 (begin, end, resume, suspend and add are given)
import contextlib
import functools
import inspect
import itertools
import sys

# RosObjectKind of trace/taut-recording/src/records.rs.
SUBSCRIPTION_OBJECT, SUBSCRIPTION_CALLBACK, SERVICE_CALLBACK = 5, 6, 8
TIMER_CALLBACK, TIMER_NODE, CALLBACK_SYMBOL = 11, 12, 13
GROUP_OF_TIMER, GROUP_OF_SUBSCRIPTION, NODE_CALLBACK = 17, 18, 25
# No addresses: numbers that are not used again.
handles = itertools.count((1 << 62) + 1)


class Steps:
    """A coroutine whose every step is reported: while it is suspended its thread does other things."""

    def __init__(self, coroutine, handle):
        self.coroutine, self.handle = coroutine, handle

    def __await__(self, begin=begin, end=end, resume=resume, suspend=suspend):
        handle, me = self.handle, id(self)
        step, argument = self.coroutine.send, None
        begin(handle)
        while True:
            try:
                awaited = step(argument)
            except StopIteration as done:
                end(handle)
                return done.value
            except BaseException:
                end(handle)
                raise
            suspend(handle, me)
            try:
                step, argument = self.coroutine.send, (yield awaited)
            except GeneratorExit:
                self.coroutine.close()
                raise
            except BaseException as error:
                step, argument = self.coroutine.throw, error
            resume(handle, me)


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


def declare_of_node(entity, handle, add=add):
    """What no handle of rcl leads to: a guard condition, an event of the middleware."""
    add(NODE_CALLBACK, handle, 0, type(entity).__name__)


def link_groups(groups, timer_class, add=add):
    """Only one of a mutually exclusive group runs at a time; others hold nothing up, so each is alone in a group."""
    add_entity = groups.CallbackGroup.add_entity

    @functools.wraps(add_entity)
    def add_and_tell(self, entity):
        add_entity(self, entity)
        with contextlib.suppress(Exception):
            handle = entity.handle.pointer
            group = id(self) if isinstance(self, groups.MutuallyExclusiveCallbackGroup) else handle
            add(GROUP_OF_TIMER if isinstance(entity, timer_class) else GROUP_OF_SUBSCRIPTION, handle, group, None)

    groups.CallbackGroup.add_entity = add_and_tell


def wrap_action_server(owner, add=add):
    """Its callbacks are given to these methods, which the constructor calls, too."""

    def wrap(what):
        register = getattr(owner, f"register_{what}_callback")

        @functools.wraps(register)
        def wrap_and_register(self, callback, *args, **kwargs):
            def declare(entity, handle):
                add(NODE_CALLBACK, handle, entity._node.handle.pointer, f"action {entity._action_name} {what}")

            return register(self, wrapped(self, callback, declare), *args, **kwargs)

        setattr(owner, wrap_and_register.__name__, wrap_and_register)

    for what in ("goal", "cancel", "handle_accepted", "execute"):
        wrap(what)


def wrap_action_client(owner, add=add):
    send_goal_async = owner.send_goal_async

    @functools.wraps(send_goal_async)
    def wrap_and_send(self, goal, feedback_callback=None, *args, **kwargs):
        def declare(entity, handle):
            add(NODE_CALLBACK, handle, entity._node.handle.pointer, f"action {entity._action_name} feedback")

        return send_goal_async(self, goal, wrapped(self, feedback_callback, declare), *args, **kwargs)

    owner.send_goal_async = wrap_and_send


def install():
    import rclpy.callback_groups
    import rclpy.guard_condition
    import rclpy.node
    import rclpy.service
    import rclpy.subscription
    import rclpy.timer

    wrap_attribute(rclpy.subscription.Subscription, declare_subscription)
    wrap_attribute(rclpy.service.Service, declare_service)
    wrap_attribute(rclpy.timer.Timer, declare_timer)
    link_timers(rclpy.node.Node)
    link_groups(rclpy.callback_groups, rclpy.timer.Timer)
    wrap_attribute(rclpy.guard_condition.GuardCondition, declare_of_node)
    # What some releases lack or call otherwise stays as it is.
    with contextlib.suppress(Exception):
        import rclpy.event_handler

        wrap_attribute(rclpy.event_handler.EventHandler, declare_of_node)
    with contextlib.suppress(Exception):
        import rclpy.action

        wrap_action_server(rclpy.action.ActionServer)
        wrap_action_client(rclpy.action.ActionClient)


if "rclpy" in sys.modules:
    install()
