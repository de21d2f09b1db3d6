/** Two faults of undici 7, kept from doing harm. The first is mended in undici 8 (nodejs/undici#5360), which wants Node 22. */
import type { Socket } from 'node:net'
import type { Dispatcher } from 'undici'
import symbols from 'undici/lib/core/symbols.js'
import Pool from 'undici/lib/dispatcher/pool.js'

/** What is used here of its parser. */
interface Parser {
  /** Undefined once it is gone. */
  readonly ptr: number | null
  readonly socket: Socket
  readonly llhttp: { llhttp_resume(ptr: number): void }
  paused: boolean
  /** 0 when no answer is under way. */
  readonly statusCode: number | null
  execute(chunk: Uint8Array): void
  /** The connection has ended: what became of the answer. */
  finish(): Error | null
}

const NOTHING = Buffer.alloc(0)

/**
 * An answer whose connection ends with it may be held back when that happens. undici takes this for a state that cannot be, and
 * throws where nobody can catch it: the process ends, with all else that it does. There is nothing more to hold back then, so
 * what waits is read; and a connection that broke has not ended an answer that tells its length by ending.
 */
function endOfConnection(this: Parser, finish: Parser['finish']): Error | null {
  if (this.paused) {
    for (let chunk: Uint8Array | null = NOTHING; chunk !== null && this.ptr !== null; ) {
      chunk = this.socket.read()
      goOn(this)
      this.execute(chunk ?? NOTHING)
    }
    goOn(this)
  }
  // Told by its last bytes.
  if (this.statusCode === 0 || this.ptr === null) return null
  if (this.socket.errored) return this.socket.errored
  // Node tells some breaks as a proper end. The system knows no other side then; Node asks it when it is first asked itself.
  return this.socket.remoteAddress === undefined ? new Error('the connection broke') : finish.call(this)
}

function goOn(parser: Parser): void {
  if (!parser.paused || parser.ptr === null) return
  parser.llhttp.llhttp_resume(parser.ptr)
  parser.paused = false
}

const mended = new WeakSet<object>()

/** Of all connections, by the first one's. */
function mendParserOf(client: object | undefined): void {
  const socket: object | undefined = client && Reflect.get(client, symbols.kSocket)
  const parser: Parser | undefined = socket && Reflect.get(socket, symbols.kParser)
  const prototype: Parser | undefined = parser && Object.getPrototypeOf(parser)
  if (prototype === undefined || mended.has(prototype)) return
  mended.add(prototype)
  const { finish } = prototype
  prototype.finish = function () {
    return endOfConnection.call(this, finish)
  }
}

/** What undici makes by itself, for the `factory` of its agents. */
export const createPool = (origin: string | URL, options: object): Dispatcher =>
  new Pool(origin, options).on('connect', (_, targets) => mendParserOf(targets.at(-1)))

/**
 * The connections to a proxy. One that closes when it is asked for a tunnel is asked again at once, without end: undici takes
 * it for a kept connection that was closed meanwhile. So it is told something else.
 */
export function createProxyPool(origin: string | URL, options: object): Dispatcher {
  const pool = new Pool(origin, options)
  const ask = pool.connect.bind(pool)
  return Object.assign(pool, {
    connect: async (asked: Dispatcher.ConnectOptions): Promise<Dispatcher.ConnectData> => {
      try {
        return await ask(asked)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'UND_ERR_SOCKET') throw error
        throw new Error('the proxy closed the connection', { cause: error })
      }
    },
  })
}
