/**
 * Standard output and error as places that text goes to. As a stream each takes Node longer to open than a short command
 * takes altogether, so one that is no terminal is written to directly until somebody asks for the stream itself.
 */
import { fstatSync, writeSync } from 'node:fs'
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

export interface OpenOutlet extends Outlet {
  /** Resolves when everything that was written is out of this process, which drops at its end what is still in a pipe. */
  flush(): Promise<void>
}

export interface OutletOptions {
  readonly fd: number
  open(): NodeJS.WriteStream
  onError(error: NodeJS.ErrnoException): void
}

/** Node writes to files and pipes of these two without returning before it is done, and so does this. */
export function openOutlet({ fd, open, onError }: OutletOptions): OpenOutlet {
  const mayBeTerminal = isCharacterDevice(fd)
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
    get isTTY() {
      return mayBeTerminal && stream().isTTY === true
    },
    get columns() {
      return mayBeTerminal ? stream().columns : undefined
    },
    stream,
    write(text) {
      if (isBroken) return
      if (mayBeTerminal || opened !== undefined) return void stream().write(text)
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
    async flush() {
      if (opened !== undefined) await flushed(opened)
    },
  }
}

/** Only such a one can be a terminal; what that is like its stream knows. */
function isCharacterDevice(fd: number): boolean {
  try {
    return fstatSync(fd).isCharacterDevice()
  } catch {
    // Closed by whoever started the program: Node puts something in its place when the stream is opened.
    return true
  }
}

export const flushed = (stream: NodeJS.WriteStream): Promise<void> =>
  new Promise((resolve) => {
    if (stream.destroyed || stream.writableEnded) setImmediate(resolve)
    // The error of a write is told after its callback.
    else stream.write('', () => setImmediate(resolve))
  })
