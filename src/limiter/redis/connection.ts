/**
 * One connection to a Redis server, which runs the script. It never reconnects: the ledger opens a new connection
 * instead.
 */
import { onAbort } from '../../host/abort.js'
import { type Disarm, systemClock } from '../../host/clock.js'
import { errorCode } from '../../host/system-error.js'
import script from './limits.lua?raw'
import type { RedisAddress } from './limits-url.js'

/** Timeout of an answer. A server without an answer counts as unavailable. */
const ANSWER_MS = 250
const TICK_MS = 25
/** Longer than `ANSWER_MS`, because a TLS connection to a distant server takes several round trips. */
const CONNECT_MS = 5_000
/** Maximum number of redirects: a cluster answers with the node that has the key. */
const MAX_MOVES = 3

/** An error of the Redis server or its connection. The message contains the reason. */
export class RedisFailure extends Error {
  /** Whether another attempt would fail in the same way. */
  readonly isLasting: boolean

  constructor(message: string, options: { readonly isLasting?: boolean; readonly cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.isLasting = options.isLasting ?? false
  }
}

export interface RedisConnection {
  /** Runs the script on a key. Rejects with `RedisFailure`. */
  run(key: string, step: object): Promise<readonly [granted: number, waitMs: number, used: number]>
  /** Resolves when the connection ends, but not after `close`. */
  readonly ended: Promise<RedisFailure>
  close(): void
}

/**
 * Rejects with `RedisFailure` if `work` takes longer than ANSWER_MS. Counts time in short ticks, and data on the socket
 * is read between ticks: if this process is busy or suspended, an answer that has arrived is still read in time.
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
  /** Redis key for the first step. */
  readonly key: string
  readonly signal: AbortSignal
}

/** Resolves with a connection on which `step` succeeded. Rejects with `RedisFailure`. */
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
      // If the host is empty, use the same host with another port.
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
    // Allow both IPv4 and IPv6.
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
    // Destroy the socket, because a suspended server does not answer the end of the connection.
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
      // Do not use the client's options for this: the client would write warnings to standard error.
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

/** Error texts by the first word of the server's answer. */
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
/**
 * The part of an error answer to remove: some servers repeat the arguments of a command, and a password is an argument.
 */
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
