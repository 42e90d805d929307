/** Server-sent events, read and written. */

export interface ServerEvent {
  event: string;
  id: string;
  data: string;
}

/** The events of one answer, until it ends; an event that was cut off is not given. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  let now: ServerEvent = { event: 'message', id: '', data: '' };
  let lines: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (rest + decoder.decode(value, { stream: true })).split('\n');
      rest = parts.pop() ?? '';
      for (const part of parts) {
        const line = part.endsWith('\r') ? part.slice(0, -1) : part;
        if (line === '') {
          if (lines.length > 0) yield { ...now, data: lines.join('\n') };
          now = { event: 'message', id: now.id, data: '' };
          lines = [];
        } else if (!line.startsWith(':')) {
          const colon = line.indexOf(':');
          const name = colon < 0 ? line : line.slice(0, colon);
          const text = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
          if (name === 'event') now.event = text;
          else if (name === 'id') now.id = text;
          else if (name === 'data') lines.push(text);
        }
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** A byte stream of `data:` events out of any objects. */
export function writeEvents<T>(events: AsyncGenerator<T>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await events.next();
        if (done) controller.close();
        else controller.enqueue(encoder.encode(`data: ${JSON.stringify(value)}\n\n`));
      } catch (error) {
        controller.error(error);
      }
    },
    async cancel() {
      await events.return(undefined);
    },
  });
}

/** What `execStream`, `streamProcessLogs`, `readFileStream` and `runCodeStream` give, one object each. */
export async function* parseSSEStream<T>(stream: ReadableStream<Uint8Array>, signal?: AbortSignal): AsyncGenerator<T> {
  for await (const e of readEvents(stream)) {
    if (signal?.aborted) throw signal.reason ?? new DOMException('aborted', 'AbortError');
    yield JSON.parse(e.data) as T;
  }
}
