"""Reports begin and end of rclpy's callbacks. Run by libtaut_ros2.so at rcl_init, with the functions of python.h.

rclpy keeps a callback as an attribute of its subscription, timer or service, and every executor reads it there, the
events executor in C++ too. So the attribute's setter puts a wrapper in its place, which the entity owns. What runs later
as a task of its own, a goal or what is done with an answer, is scheduled: its run has a number, which says what it is for.
"""

# ruff: noqa: F821 (begin, begin_coroutine, begin_filtered, begin_scheduled, end, resume, suspend, schedule, schedule_task, joined and
# add are given)
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
# By id() of a message, which is its own while a filter has it: the callback that it came to, and which run of that.
filtered = {}
MOST_FILTERED = 1 << 14


class Steps:
    """A coroutine whose every step is reported: while it is suspended its thread does other things."""

    def __init__(self, coroutine, handle, run=0):
        self.coroutine, self.handle, self.run = coroutine, handle, run

    def __await__(self, end=end, resume=resume, suspend=suspend):
        handle, me = self.handle, id(self)
        step, argument = self.coroutine.send, None
        begin_run(handle, self.run, begin_coroutine)
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
                resume(handle, me)
                try:
                    self.coroutine.close()
                finally:
                    end(handle)
                raise
            except BaseException as error:
                step, argument = self.coroutine.throw, error
            resume(handle, me)


def begin_run(handle, run, begin=begin, begin_scheduled=begin_scheduled):
    """`run`: the number under which it was scheduled; 0 if it was not."""
    if run:
        begin_scheduled(handle, run)
    else:
        begin(handle)


def function_of(callback):
    while isinstance(callback, functools.partial):
        callback = callback.func
    return callback


def is_of_rclpy(callback):
    """Its functions in C++, too: the events executor's."""
    function = function_of(callback)
    return inspect.isbuiltin(function) or (getattr(function, "__module__", None) or "").startswith("rclpy.")


def name_of(callback):
    callback = function_of(callback)
    name = getattr(callback, "__qualname__", None) or type(callback).__qualname__
    return f"{module_of(callback)}.{name}"[:500]


def module_of(callback):
    # A coroutine does not say its module; its frame is gone once it has ended.
    frame = getattr(callback, "cr_frame", None)
    if frame is not None:
        return frame.f_globals.get("__name__", "")
    return getattr(callback, "__module__", None) or type(callback).__module__


async def run_of(coroutine, handle, number):
    return await Steps(coroutine, handle, number)


def wrapper_of(callback, handle, number=0, end=end):
    if inspect.iscoroutinefunction(callback):

        async def run(*args, **kwargs):
            return await Steps(callback(*args, **kwargs), handle, number)

    else:

        def run(*args, **kwargs):
            begin_run(handle, number)
            try:
                return callback(*args, **kwargs)
            finally:
                end(handle)

    functools.update_wrapper(run, callback)
    run._taut_callback = callback
    return run


def filter_of(callback):
    """The filter of message_filters whose method it is."""
    owner = getattr(callback, "__self__", None)
    # A program may have a module of this name that is another one.
    kind = getattr(sys.modules.get("message_filters"), "SimpleFilter", None)
    return owner if isinstance(kind, type) and isinstance(owner, kind) else None


def filter_wrapper_of(callback, handle, begin_filtered=begin_filtered, end=end):
    """It hands its message to a filter, whose set it completes or waits for."""

    def run(message, *args):
        number = next(handles)
        filtered.pop(id(message), None)
        if len(filtered) >= MOST_FILTERED:
            # Another thread may change it meanwhile.
            with contextlib.suppress(RuntimeError, StopIteration):
                filtered.pop(next(iter(filtered)), None)
        filtered[id(message)] = (handle, number)
        begin_filtered(handle, number)
        try:
            return callback(message, *args)
        finally:
            end(handle)

    functools.update_wrapper(run, callback)
    run._taut_callback = callback
    return run


def wrap_filters(filter_class, joined=joined):
    """A set is what a filter passes on of more than one message."""
    if "_taut_is_wrapped" in filter_class.__dict__:
        return
    filter_class._taut_is_wrapped = True
    signal = filter_class.signalMessage

    @functools.wraps(signal)
    def tell_and_signal(self, *messages):
        if len(messages) > 1:
            for message in messages:
                # It may be in another set, too.
                run = filtered.get(id(message))
                if run is not None:
                    joined(*run)
        return signal(self, *messages)

    filter_class.signalMessage = tell_and_signal


def wrapped(entity, callback, declare, add=add):
    """What the entity keeps as its callback; the callback itself if anything is not as expected."""
    if callback is None:
        return None
    callback = getattr(callback, "_taut_callback", callback)
    try:
        handle = next(handles)
        if filter_of(callback) is not None and not inspect.iscoroutinefunction(callback):
            wrap_filters(sys.modules["message_filters"].SimpleFilter)
            run = filter_wrapper_of(callback, handle)
        else:
            run = wrapper_of(callback, handle)
        with contextlib.suppress(TypeError, ValueError):
            # rclpy asks for it at each call of a timer, and builds it each time where it is not kept.
            run.__signature__ = inspect.signature(callback)
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


def kind_of(entity):
    return getattr(entity, "_taut_kind", type(entity).__name__)


def declare_of_node(entity, handle, add=add):
    """What no handle of rcl leads to: a guard condition, an event of the middleware."""
    add(NODE_CALLBACK, handle, 0, kind_of(entity))
    entity._taut_handle = handle


def name_events(owner):
    """As "subscription requested deadline missed /scan": only its making knows of which topic an event is."""
    init = owner.__init__

    @functools.wraps(init)
    def name_and_init(self, *args, **kwargs):
        with contextlib.suppress(Exception):
            words = kwargs["event_type"].name.removeprefix("RCL_").lower().replace("_", " ")
            self._taut_kind = f"{words} {kwargs['parent_impl'].get_topic_name()}"
        init(self, *args, **kwargs)

    owner.__init__ = name_and_init


def link_nodes(node_class, waitable_class, add=add):
    """Only their node knows which these are of; a waitable that is none of rclpy's is wrapped here."""
    create_guard_condition, add_waitable = node_class.create_guard_condition, node_class.add_waitable

    def link(node, entity):
        with contextlib.suppress(Exception):
            add(NODE_CALLBACK, entity._taut_handle, node.handle.pointer, kind_of(entity))

    @functools.wraps(create_guard_condition)
    def create_and_link(self, *args, **kwargs):
        guard_condition = create_guard_condition(self, *args, **kwargs)
        link(self, guard_condition)
        return guard_condition

    @functools.wraps(add_waitable)
    def link_and_add(self, waitable):
        with contextlib.suppress(Exception):
            owner = type(waitable)
            if isinstance(waitable, waitable_class) and not owner.__module__.startswith("rclpy."):
                waitable._taut_handle = next(handles)
                if "_taut_is_wrapped" not in owner.__dict__:
                    owner._taut_is_wrapped = True
                    wrap_method(owner, "execute", lambda self, *_: (self._taut_handle, 0))
            link(self, waitable)
        return add_waitable(self, waitable)

    node_class.create_guard_condition, node_class.add_waitable = create_and_link, link_and_add


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


def wrap_method(owner, name, run_of):
    """A coroutine method as a callback; `run_of` says of which handle, and which run."""
    method = getattr(owner, name)

    @functools.wraps(method)
    async def run(self, *args, **kwargs):
        try:
            handle, number = run_of(self, *args)
        except Exception:
            return await method(self, *args, **kwargs)
        return await Steps(method(self, *args, **kwargs), handle, number)

    setattr(owner, name, run)


def wrap_futures(future_class, schedule=schedule):
    """What is to be done with a future of `_taut_run` is scheduled when that has its result."""
    set_result, add_done_callback, remove = (
        future_class.set_result,
        future_class.add_done_callback,
        future_class.remove_done_callback,
    )

    def is_reported(callback):
        """rclpy's own callbacks only wake something up, but for one, which sends a result."""
        return not is_of_rclpy(callback) or getattr(function_of(callback), "__name__", "") == "_send_result_response"

    @functools.wraps(set_result)
    def schedule_and_set(self, result):
        run = self.__dict__.get("_taut_run")
        if run and self.__dict__.get("_taut_is_awaited"):
            schedule(*run)
        set_result(self, result)

    @functools.wraps(add_done_callback)
    def wrap_and_add(self, callback):
        run = self.__dict__.get("_taut_run")
        if run and is_reported(callback):
            is_first = not self.__dict__.get("_taut_is_awaited")
            self._taut_is_awaited = True
            if is_first and self.done():
                schedule(*run)
            callback = wrapper_of(callback, run[0], run[1] if is_first else 0)
        add_done_callback(self, callback)

    @functools.wraps(remove)
    def remove_wrapped(self, callback):
        is_it = (each for each in self._callbacks if getattr(each, "_taut_callback", None) == callback)
        return remove(self, next(is_it, callback))

    future_class.set_result, future_class.add_done_callback = schedule_and_set, wrap_and_add
    future_class.remove_done_callback = remove_wrapped


def wrap_tasks(executor_class, node_class, add=add, schedule_task=schedule_task):
    """What the program gives an executor to run: a callback of the node whose method it is, else of the executor's only one."""
    create_task = executor_class.create_task
    handles_of_tasks = {}

    def node_of(executor, function):
        owner = getattr(function, "__self__", None)
        nodes = [owner] if isinstance(owner, node_class) else list(executor.get_nodes())
        return nodes[0].handle.pointer if len(nodes) == 1 else 0

    def handle_of(executor, callback):
        function, node = function_of(callback), node_of(executor, function_of(callback))
        name = name_of(callback).removeprefix(f"{module_of(function)}.")
        if (node, name) not in handles_of_tasks:
            handles_of_tasks[node, name] = next(handles)
            add(NODE_CALLBACK, handles_of_tasks[node, name], node, f"task {name}")
        return handles_of_tasks[node, name]

    @functools.wraps(create_task)
    def schedule_and_create(self, callback, *args, **kwargs):
        with contextlib.suppress(Exception):
            if not (hasattr(callback, "_taut_callback") or is_of_rclpy(callback)):
                handle, run = handle_of(self, callback), next(handles)
                is_begun = inspect.iscoroutine(callback)
                callback = run_of(callback, handle, run) if is_begun else wrapper_of(callback, handle, run)
                schedule_task(handle, run)
        return create_task(self, callback, *args, **kwargs)

    executor_class.create_task = schedule_and_create


def schedules(method, handle_of):
    """The method returns a future; what is done with its result is a callback with the handle that `handle_of` gives."""

    @functools.wraps(method)
    def tell(self, *args, **kwargs):
        future = method(self, *args, **kwargs)
        with contextlib.suppress(Exception):
            future._taut_run = (handle_of(self), next(handles))
        return future

    return tell


def declare_all(entity, node, kind, name, whats, add=add):
    """Callbacks of an entity, by what they are; rclpy runs them by other means than an attribute of their own."""
    entity._taut_handles = {what: next(handles) for what in whats}
    for what, handle in entity._taut_handles.items():
        add(NODE_CALLBACK, handle, node.handle.pointer, f"{kind} {name} {what}")


def wrap_clients(client_class, node_class):
    """What is done with an answer. rclpy's clients do not know their node."""
    create_client = node_class.create_client

    @functools.wraps(create_client)
    def create_and_declare(self, *args, **kwargs):
        client = create_client(self, *args, **kwargs)
        with contextlib.suppress(Exception):
            declare_all(client, self, "client", self.resolve_service_name(client.srv_name), ["answer"])
        return client

    node_class.create_client = create_and_declare
    client_class.call_async = schedules(client_class.call_async, lambda client: client._taut_handles["answer"])


def declare_action(entity, node, name, whats):
    """The name of an action is resolved as those of its services are."""
    end = "/_action/send_goal"
    declare_all(entity, node, "action", node.resolve_service_name(name + end).removesuffix(end), whats)


def wrap_action_server(owner, add=add, schedule=schedule):
    """What it does with requests, and the callback that executes a goal; with the names of the callbacks that it is given."""
    init, notify_execute = owner.__init__, owner.notify_execute
    requests = {
        "goal": "_execute_goal_request",
        "cancel": "_execute_cancel_request",
        "get result": "_execute_get_result_request",
    }

    @functools.wraps(init)
    def declare_and_init(self, node, action_type, action_name, *args, **kwargs):
        with contextlib.suppress(Exception):
            declare_action(self, node, action_name, [*requests, "execute", "send result"])
        init(self, node, action_type, action_name, *args, **kwargs)

    def wrap_request(what, method):
        wrap_method(owner, method, lambda self, *_: (self._taut_handles[what], 0))

    def name_registered(what):
        register = getattr(owner, f"register_{what}_callback")

        @functools.wraps(register)
        def register_and_name(self, callback, *args, **kwargs):
            with contextlib.suppress(Exception):
                add(CALLBACK_SYMBOL, self._taut_handles[what], 0, name_of(callback))
            return register(self, callback, *args, **kwargs)

        setattr(owner, f"register_{what}_callback", register_and_name)

    @functools.wraps(notify_execute)
    def schedule_and_notify(self, goal_handle, *args, **kwargs):
        with contextlib.suppress(Exception):
            goal_handle._taut_run = (self._taut_handles["execute"], next(handles))
            result = self._result_futures[bytes(goal_handle.goal_id.uuid)]
            result._taut_run = (self._taut_handles["send result"], next(handles))
            schedule(*goal_handle._taut_run)
        return notify_execute(self, goal_handle, *args, **kwargs)

    owner.__init__, owner.notify_execute = declare_and_init, schedule_and_notify
    for what, method in requests.items():
        wrap_request(what, method)
    for what in ("goal", "cancel", "execute"):
        name_registered(what)
    wrap_method(owner, "_execute_goal", lambda self, callback, goal_handle: goal_handle._taut_run)


def wrap_action_client(owner, add=add):
    """What is done with the answer to a goal, with feedback and with a result."""
    init, send_goal_async = owner.__init__, owner.send_goal_async

    @functools.wraps(init)
    def declare_and_init(self, node, action_type, action_name, *args, **kwargs):
        init(self, node, action_type, action_name, *args, **kwargs)
        with contextlib.suppress(Exception):
            declare_action(self, node, action_name, ["answer", "feedback", "result", "cancel answer"])

    @functools.wraps(send_goal_async)
    def wrap_and_send(self, goal, feedback_callback=None, *args, **kwargs):
        if feedback_callback is not None:
            with contextlib.suppress(Exception):
                handle = self._taut_handles["feedback"]
                if self.__dict__.get("_taut_feedback") != (name := name_of(feedback_callback)):
                    self._taut_feedback = name
                    add(CALLBACK_SYMBOL, handle, 0, name)
                feedback_callback = wrapper_of(feedback_callback, handle)
        return send_goal_async(self, goal, feedback_callback, *args, **kwargs)

    owner.__init__ = declare_and_init
    owner.send_goal_async = schedules(wrap_and_send, lambda client: client._taut_handles["answer"])
    owner._get_result_async = schedules(owner._get_result_async, lambda client: client._taut_handles["result"])
    owner._cancel_goal_async = schedules(owner._cancel_goal_async, lambda client: client._taut_handles["cancel answer"])


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
        import rclpy.executors

        wrap_tasks(rclpy.executors.Executor, rclpy.node.Node)
    with contextlib.suppress(Exception):
        from rclpy.impl.implementation_singleton import rclpy_implementation

        # It is written in C++.
        wrap_tasks(rclpy_implementation.EventsExecutor, rclpy.node.Node)
    with contextlib.suppress(Exception):
        import rclpy.event_handler

        wrap_attribute(rclpy.event_handler.EventHandler, declare_of_node)
        name_events(rclpy.event_handler.EventHandler)
    with contextlib.suppress(Exception):
        import rclpy.waitable

        link_nodes(rclpy.node.Node, rclpy.waitable.Waitable)
    with contextlib.suppress(Exception):
        import rclpy.client
        import rclpy.task

        wrap_futures(rclpy.task.Future)
        wrap_clients(rclpy.client.Client, rclpy.node.Node)
    with contextlib.suppress(Exception):
        import rclpy.action

        wrap_action_server(rclpy.action.ActionServer)
        wrap_action_client(rclpy.action.ActionClient)


if "rclpy" in sys.modules:
    install()
