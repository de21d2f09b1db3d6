/**
 * Workarounds for three faults of undici 7: a crash when a connection ends while its parser is paused (nodejs/undici#5360, fixed
 * in undici 8, which needs Node 22; 7.30.2 still has it), `100 Continue` as an error, and a proxy that is asked without end.
 */
import type { Socket } from 'node:net'
import type { Dispatcher } from 'undici'
import symbols from 'undici/lib/core/symbols.js'
import Pool from 'undici/lib/dispatcher/pool.js'

/** The parts of undici's parser that are used here. */
interface Parser {
  /** Null after the parser was destroyed. */
  readonly ptr: number | null
  readonly socket: Socket
  readonly llhttp: { llhttp_resume(ptr: number): void }
  paused: boolean
  /** 0 between two responses. */
  statusCode: number | null
  headers: readonly Uint8Array[]
  headersSize: number
  /** Returns 1 for a response without a body. */
  onHeadersComplete(status: number, upgrade: boolean, keepAlive: boolean): number
  execute(chunk: Uint8Array): void
  /** Called when the connection ends. Returns what is wrong with the response. */
  finish(): Error | null
}

const EMPTY = Buffer.alloc(0)

/**
 * Replaces `finish`, which throws where nothing can catch it if the parser is paused: the process crashes. Reads what is
 * left in the socket first. A broken connection does not complete a response whose length only its end tells.
 */
function finishPaused(this: Parser, finish: Parser['finish']): Error | null {
  if (this.paused) {
    for (let chunk: Uint8Array | null = EMPTY; chunk !== null && this.ptr !== null; ) {
      chunk = this.socket.read()
      resume(this)
      this.execute(chunk ?? EMPTY)
    }
    resume(this)
  }
  // Complete by what was just read.
  if (this.statusCode === 0 || this.ptr === null) return null
  if (this.socket.errored) return this.socket.errored
  // Node reports some broken connections as ended. They have no remote address any more.
  return this.socket.remoteAddress === undefined ? new Error('the connection broke') : finish.call(this)
}

function resume(parser: Parser): void {
  if (!parser.paused || parser.ptr === null) return
  parser.llhttp.llhttp_resume(parser.ptr)
  parser.paused = false
}

/**
 * Replaces `onHeadersComplete`, which closes the connection on a `100 Continue`. A client has to expect one although it did
 * not ask for it, and ignore it (RFC 9110, 15.2).
 */
function skipContinue(
  this: Parser,
  onHeadersComplete: Parser['onHeadersComplete'],
  ...head: Parameters<Parser['onHeadersComplete']>
): number {
  const [status] = head
  if (status !== 100 || this.socket.destroyed) return onHeadersComplete.apply(this, head)
  this.statusCode = status
  this.headers = []
  this.headersSize = 0
  return 1
}

const patched = new WeakSet<object>()

/** undici does not export its parser: the prototype is found by the first connection. */
function patchParserOf(client: object | undefined): void {
  const socket: object | undefined = client && Reflect.get(client, symbols.kSocket)
  const parser: Parser | undefined = socket && Reflect.get(socket, symbols.kParser)
  const prototype: Parser | undefined = parser && Object.getPrototypeOf(parser)
  if (prototype === undefined || patched.has(prototype)) return
  patched.add(prototype)
  const { finish, onHeadersComplete } = prototype
  prototype.finish = function () {
    return finishPaused.call(this, finish)
  }
  prototype.onHeadersComplete = function (...head) {
    return skipContinue.call(this, onHeadersComplete, ...head)
  }
}

/** For the `factory` of undici's agents, in place of their own. */
export const createPool = (origin: string | URL, options: object): Dispatcher =>
  new Pool(origin, options).on('connect', (_, targets) => patchParserOf(targets.at(-1)))

/**
 * Connections to a proxy. When a proxy closes the connection instead of opening a tunnel, undici takes that for a stale
 * connection and tries again without end, so it gets another error.
 */
export function createProxyPool(origin: string | URL, options: object): Dispatcher {
  const pool = createPool(origin, options)
  const connect = pool.connect.bind(pool)
  return Object.assign(pool, {
    connect: async (target: Dispatcher.ConnectOptions): Promise<Dispatcher.ConnectData> => {
      try {
        return await connect(target)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'UND_ERR_SOCKET') throw error
        throw new Error('the proxy closed the connection', { cause: error })
      }
    },
  })
}
