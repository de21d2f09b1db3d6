/**
 * Standard output and error as places that text goes to. As a stream each takes Node longer to open than a short command
 * takes altogether, so what is no terminal is opened only by a command that is still at work when it has said something.
 */
import { fstatSync, type Stats, statSync, writeSync } from 'node:fs'
import type { Outlet, OutputStream } from './io.js'

/** An outlet that is its stream from the start: a terminal, or a test's buffer. */
export const outletOf = (stream: OutputStream): Outlet => ({
  get isTTY() {
    return stream.isTTY === true
  },
  get columns() {
    return stream.columns
  },
  write: (text) => void stream.write(text),
  stream: () => stream,
})

export interface OutletOptions {
  readonly fd: number
  open(): NodeJS.WriteStream
  onError(error: NodeJS.ErrnoException): void
}

export interface Outlets {
  readonly stdout: Outlet
  readonly stderr: Outlet
  /**
   * Resolves when everything that was written is out of this process, which drops at its end what is still in a pipe. A reader
   * that stands still is waited for, and nothing but a signal ends that.
   */
  flush(): Promise<void>
}

export function openOutlets(options: {
  readonly stdout: OutletOptions
  readonly stderr: OutletOptions
}): Outlets {
  /** What is for pipes, in the order of its writing: both may be the same one. */
  const held: { readonly to: Sink; readonly text: string }[] = []
  const pass = (write: (to: Sink, text: string) => void) => {
    for (const { to, text } of held.splice(0)) write(to, text)
  }
  const hold = (to: Sink, text: string) => {
    // A pipe whose reader stands still must not hold up work, so a command that goes on leaves it to the stream.
    if (held.length === 0) setImmediate(() => pass((sink, each) => void sink.stream().write(each)))
    held.push({ to, text })
  }
  const [stdout, stderr] = [sinkOf(options.stdout), sinkOf(options.stderr)]
  return {
    stdout: outletTo(stdout, hold),
    stderr: outletTo(stderr, hold),
    async flush() {
      pass((sink, text) => sink.writeAndWait(text))
      for (const { opened } of [stdout, stderr]) if (opened !== undefined) await flushed(opened)
    },
  }
}

interface Sink {
  readonly kind: 'terminal' | 'file' | 'pipe'
  readonly opened: NodeJS.WriteStream | undefined
  stream(): NodeJS.WriteStream
  /** Returns when the text is where it goes to, or cannot go. */
  writeAndWait(text: string): void
}

const outletTo = (sink: Sink, hold: (to: Sink, text: string) => void): Outlet => ({
  get isTTY() {
    return sink.kind === 'terminal' && sink.stream().isTTY === true
  },
  get columns() {
    return sink.kind === 'terminal' ? sink.stream().columns : undefined
  },
  write(text) {
    if (sink.kind === 'terminal' || sink.opened !== undefined) sink.stream().write(text)
    else if (sink.kind === 'file') sink.writeAndWait(text)
    else hold(sink, text)
  },
  stream: sink.stream,
})

function sinkOf({ fd, open, onError }: OutletOptions): Sink {
  let opened: NodeJS.WriteStream | undefined
  let isBroken = false
  const stream = () => {
    if (opened === undefined) {
      opened = open()
      opened.on('error', onError)
    }
    return opened
  }
  return {
    kind: kindOf(fd),
    get opened() {
      return opened
    },
    stream,
    writeAndWait(text) {
      if (isBroken) return
      if (opened !== undefined) return void opened.write(text)
      let bytes: Uint8Array = Buffer.from(text)
      try {
        while (bytes.byteLength > 0) bytes = bytes.subarray(writeSync(fd, bytes))
      } catch (thrown) {
        const error = thrown as NodeJS.ErrnoException
        // A pipe that is full and does not wait is the stream's to wait for.
        if (error.code === 'EAGAIN') return void stream().write(bytes)
        isBroken = true
        onError(error)
      }
    },
  }
}

/** Whether a device is a terminal, and what it is like, its stream knows. */
function kindOf(fd: number): Sink['kind'] {
  let found: Stats
  try {
    found = fstatSync(fd)
  } catch {
    // Closed by whoever started the program: Node puts something in its place when the stream is opened.
    return 'terminal'
  }
  if (found.isCharacterDevice()) return isNowhere(found) ? 'file' : 'terminal'
  return found.isFile() ? 'file' : 'pipe'
}

/** Where scripts send what they do not want: it takes everything at once. */
const isNowhere = ({ rdev }: Stats): boolean =>
  statSync('/dev/null', { throwIfNoEntry: false })?.rdev === rdev

export const flushed = (stream: NodeJS.WriteStream): Promise<void> =>
  new Promise((resolve) => {
    if (stream.destroyed || stream.writableEnded) setImmediate(resolve)
    // The error of a write is told after its callback.
    else stream.write('', () => setImmediate(resolve))
  })
