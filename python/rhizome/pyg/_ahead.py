"""Minibatches on a device. Each is copied there while the previous one is in use."""

from __future__ import annotations

import atexit
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from .._loader import LentRows

AHEAD = 2  # number of minibatches that wait on the device

_running: dict[threading.Thread, threading.Event] = {}  # the threads of all feeds, and what stops each


@atexit.register
def _stop_all() -> None:
    """Ends the threads before the interpreter shuts down, which would end them inside of torch and abort the process."""
    running = dict(_running)
    for stopped in running.values():
        stopped.set()
    for thread in running:
        if thread.is_alive():
            thread.join()


class DeviceFeed:
    """Takes minibatches on a separate thread and moves them to a device.

    Rows for a CUDA device are copied through pinned memory on a separate stream, so that neither the host nor the model
    waits for them. Errors are raised in place of the minibatch. Ending the loop early ends the thread after the
    minibatch in progress.
    """

    def __init__(self, device: torch.device) -> None:
        torch.empty(0, device=device)  # torch raises here if there is a problem with the device
        self._device = device

    def rows(self, lent: LentRows) -> torch.Tensor:
        """Copies rows of a loader to a buffer from which they can be copied to the device."""
        kind = torch.from_numpy(np.empty(0, lent.dtype)).dtype
        rows = torch.empty(lent.shape, dtype=kind, pin_memory=self._device.type == "cuda")
        np.take(lent.table, lent.place, axis=0, out=rows.numpy(), mode="clip")  # this mode needs no temporary buffer
        return rows

    def moved(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yields the minibatches on the device, in their order."""
        ready: queue.Queue[Callable[[], Any] | None] = queue.Queue(AHEAD)
        stopped = threading.Event()

        def put(entry: Callable[[], Any] | None) -> None:
            while not stopped.is_set():
                try:
                    return ready.put(entry, timeout=0.1)
                except queue.Full:
                    continue

        def take() -> None:
            try:
                stream = torch.cuda.Stream(self._device) if self._device.type == "cuda" else None
                for batch in batches:
                    put(self._move(batch, stream))
                    del batch  # returns its rows to the loader
                    if stopped.is_set():
                        return
                put(None)
            except BaseException as error:  # the consumer must receive any exception
                put(_raises(error))
            finally:
                _running.pop(threading.current_thread(), None)

        thread = threading.Thread(target=take, name="rhizome-device-feed", daemon=True)
        _running[thread] = stopped
        thread.start()
        try:
            while (entry := ready.get()) is not None:
                yield entry()
        finally:
            stopped.set()
            thread.join()

    def _move(self, batch: Any, stream: torch.cuda.Stream | None) -> Callable[[], Any]:
        """Queues the copies. Returns a function that hands the minibatch to the caller's stream."""
        if stream is None:
            moved = batch.to(self._device)
            return lambda: moved
        with torch.cuda.device(self._device), torch.cuda.stream(stream):
            moved = batch.pin_memory().to(self._device, non_blocking=True)
            done = stream.record_event()

        def give() -> Any:
            current = torch.cuda.current_stream(self._device)
            current.wait_event(done)
            moved.record_stream(current)  # prevents reuse of its memory before the caller's work on it has run
            return moved

        return give


def _raises(error: BaseException) -> Callable[[], Any]:
    def give() -> Any:
        raise error

    return give
