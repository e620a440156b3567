"""As much of the package message_filters as a synchroniser needs: PyPI has no wheel of it."""


class SimpleFilter:
    def __init__(self):
        self.callbacks = []

    def registerCallback(self, callback, *args):
        self.callbacks.append((callback, args))

    def signalMessage(self, *messages):
        for callback, args in self.callbacks:
            callback(*messages, *args)


class Subscriber(SimpleFilter):
    def __init__(self, node, *args):
        super().__init__()
        self.sub = node.create_subscription(args[0], args[1], self.callback, 10)

    def callback(self, message):
        self.signalMessage(message)


class Synchronizer(SimpleFilter):
    """Joins messages of one number, as the exact policy those of one stamp."""

    def __init__(self, filters):
        super().__init__()
        self.queues = [{} for _ in filters]
        for one, queue in zip(filters, self.queues, strict=True):
            one.registerCallback(self.add, queue)

    def add(self, message, queue):
        queue[int(message.data)] = message
        for number in set.intersection(*map(set, self.queues)):
            self.signalMessage(*(queue.pop(number) for queue in self.queues))
