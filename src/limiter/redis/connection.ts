/** One connection to a Redis server, on which the script runs. It never reconnects: the ledger opens another one. */
import { onAbort } from '../../host/abort.js'
import { type Disarm, systemClock } from '../../host/clock.js'
import { errorCode } from '../../host/system-error.js'
import script from './limits.lua?raw'
import type { RedisAddress } from './limits-url.js'

/** A server that does not answer for longer is away. */
const ANSWER_MS = 250
const TICK_MS = 25
/** Longer, since a connection with TLS to a distant server takes several round trips. */
const CONNECT_MS = 5_000
/** A cluster names the node that has the key. */
const MAX_MOVES = 3

/** The message says why. */
export class RedisFailure extends Error {
  /** Whether another attempt would end in the same way. */
  readonly isLasting: boolean

  constructor(message: string, options: { readonly isLasting?: boolean; readonly cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.isLasting = options.isLasting ?? false
  }
}

export interface RedisConnection {
  /** Runs the script on a key. Rejects with `RedisFailure`. */
  run(key: string, step: object): Promise<readonly [granted: number, waitMs: number, used: number]>
  /** Resolves when the connection has ended, unless `close` was called before. */
  readonly ended: Promise<RedisFailure>
  close(): void
}

/**
 * Rejects with `RedisFailure` when the work takes longer than ANSWER_MS. The time is counted in short ticks, and
 * what the socket holds is read between them: while this process is busy or suspended itself, an answer is not
 * missing.
 */
export function withPatience<Result>(work: Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    let ticks = 0
    const tick = (): Disarm => systemClock.alarm(TICK_MS, onTick)
    const onTick = () => {
      ticks++
      if (ticks * TICK_MS < ANSWER_MS) disarm = tick()
      else reject(new RedisFailure(`no answer within ${ANSWER_MS} ms`))
    }
    let disarm = tick()
    work.then(resolve, reject).finally(() => disarm())
  })
}

interface RedisConnectOptions {
  readonly address: RedisAddress
  /** The key of the first step. */
  readonly key: string
  readonly signal: AbortSignal
}

/** A connection that has answered `step`. Rejects with `RedisFailure`. */
export async function connectRedis(options: RedisConnectOptions, step: object): Promise<RedisConnection> {
  let { address } = options
  for (let moves = 0; ; moves++) {
    const connection = await connectTo({ ...options, address })
    try {
      await connection.run(options.key, step)
      return connection
    } catch (error) {
      connection.close()
      const [, host, port] = /^MOVED \d+ (.*):(\d+)$/.exec(messageOfCause(error)) ?? []
      if (port === undefined || moves === MAX_MOVES) throw error
      // Without a host it is the same one on another port.
      address = { ...address, host: host || address.host, port: Number(port) }
    }
  }
}

async function connectTo({ address, signal }: RedisConnectOptions): Promise<RedisConnection> {
  const { host, port, username, password, database, isTls } = address
  const { Redis } = await import('iovalkey')
  const redis = new Redis({
    host,
    port,
    // IPv4 or IPv6, as the name resolves.
    family: 0,
    lazyConnect: true,
    enableOfflineQueue: false,
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    retryStrategy: () => null,
    connectTimeout: CONNECT_MS,
    ...(isTls ? { tls: {} } : {}),
  })
  let isClosed = false
  let problem: unknown
  const close = () => {
    isClosed = true
    forget()
    redis.disconnect()
    // A server that is stopped does not answer the end of the connection.
    redis.stream?.destroy()
  }
  const forget = onAbort(signal, close)
  redis.on('error', (error) => {
    problem ??= error
  })
  const attempt = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    try {
      return await work()
    } catch (error) {
      throw asFailure(problem ?? error)
    }
  }
  try {
    await attempt(async () => {
      await redis.connect()
      // Not by options of the client: it would write warnings to standard error.
      if (password !== undefined)
        await withPatience(username === undefined ? redis.auth(password) : redis.auth(username, password))
      if (database !== 0) await withPatience(redis.select(database))
    })
  } catch (error) {
    close()
    throw error
  }
  const ended = new Promise<RedisFailure>((resolve) => {
    redis.on('close', () => {
      if (!isClosed) resolve(asFailure(problem ?? new Error('Connection is closed.')))
    })
  })
  return {
    ended,
    run: (key, step) =>
      attempt(
        async () =>
          (await withPatience(redis.eval(script, 1, key, JSON.stringify(step)))) as [number, number, number],
      ),
    close,
  }
}

const messageOfCause = (error: unknown): string =>
  error instanceof Error && error.cause instanceof Error ? error.cause.message : ''

/** What the server answers, by its first word. */
const REPLIES: Readonly<Record<string, string>> = {
  WRONGPASS: 'wrong user name or password',
  NOAUTH: 'the server requires a password',
  NOPERM: 'the user may not run the script',
  READONLY: 'the server is a read-only replica',
  LOADING: 'the server is loading its data',
  WRONGTYPE: 'another program uses the key',
}
const LASTING =
  /^(WRONGPASS|NOAUTH|NOPERM|WRONGTYPE|ERR (AUTH|Client sent AUTH|invalid password|unknown command))/
/** Some servers repeat the arguments of a command, and a password is one. */
const ARGUMENTS = /(, with args beginning with.*|\.)$/s

const CODES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'the connection was reset; does the server require TLS (rediss://)?',
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'host not found',
  ETIMEDOUT: 'no answer',
  EPROTO: 'the server does not use TLS (use redis://)',
  ERR_SSL_WRONG_VERSION_NUMBER: 'the server does not use TLS (use redis://)',
}

function asFailure(error: unknown): RedisFailure {
  if (error instanceof RedisFailure) return error
  const cause = error instanceof AggregateError ? error.errors[0] : error
  const { name, message } = cause instanceof Error ? cause : new Error(String(cause))
  if (name === 'ReplyError') {
    const reply = message.replace(ARGUMENTS, '')
    const reason = REPLIES[/^[A-Z]+/.exec(reply)?.[0] ?? '']
    return new RedisFailure(reason === undefined ? reply : `${reason} (${reply})`, {
      isLasting: LASTING.test(reply),
      cause,
    })
  }
  if (name === 'ParserError' || message.startsWith('Protocol error'))
    return new RedisFailure('the server is not a Redis server', { isLasting: true, cause })
  if (/^(Connection is closed|Stream isn't writeable)/.test(message))
    return new RedisFailure('the connection was closed', { cause })
  return new RedisFailure(CODES[errorCode(cause) ?? ''] ?? message, { cause })
}
