/**
 * Downloads one output to a complete part file, with retries, and with a fresh link when the old one may have expired.
 */
import { messageOf } from '../errors.js'
import type { Clock } from '../host/clock.js'
import type { FileSystem } from '../host/file-system.js'
import { type Fetch, HttpFailure } from '../host/http.js'
import { retry } from '../host/retry.js'
import type { FileMeter } from './download-progress.js'
import {
  AttemptFailed,
  afterFailedTry,
  downloadFailed,
  MAX_TRIES,
  mayHaveExpired,
  NEW_BUDGET,
  waitAfter,
  withWriteErrors,
} from './failures.js'
import { type FileKind, HEAD_BYTES, kindOf } from './file-kind.js'
import {
  checked,
  decoded,
  inPieces,
  type OutputRequest,
  type OutputResponse,
  parseOutputUrl,
  printableUrl,
  sendRequest,
} from './output-request.js'
import type { Part } from './part-file.js'
import {
  continuationOf,
  declaredLength,
  metadataOf,
  resumePlan,
  totalOf,
  usefulBytes,
} from './resume-plan.js'

export interface DownloaderOptions {
  readonly fetch: Fetch
  readonly clock: Clock
  /** Returns a number in [0, 1), to spread retries. */
  readonly random: () => number
  readonly fileSystem?: FileSystem | undefined
}

export interface OutputLink {
  readonly url: string
  /** Asks the service for a new link to this output. Resolves with undefined if the service has no new link. */
  readonly freshUrl?: (() => Promise<string | undefined>) | undefined
}

/** A part with its final path. */
export interface OpenedPart {
  readonly part: Part
  readonly path: string
  readonly kind: FileKind
}

/** The part of one output over all attempts of a command. */
export interface PartSession {
  /** Undefined until `open`. */
  readonly opened: OpenedPart | undefined
  /** Kind of output that the run makes (`image`, `video`, …); undefined if unknown. */
  readonly expectedKind: string | undefined
  /** Throws `download_failed` if an obstacle is at the final path. */
  open(kind: FileKind): Promise<OpenedPart>
}

interface FetchOptions {
  readonly session: PartSession
  readonly meter: FileMeter
  readonly signal: AbortSignal | undefined
}

type TryOutcome = (FetchedPart & { readonly url: string }) | AttemptFailed

/**
 * Downloads an output to a part. Throws `download_failed` or the signal's reason. The caller moves or discards the part.
 */
export async function fetchOutput(
  { fetch, clock, random }: DownloaderOptions,
  { url: firstUrl, freshUrl }: OutputLink,
  { session, meter, signal }: FetchOptions,
): Promise<FetchedPart & { readonly url: string }> {
  let address = firstUrl
  let askForFreshUrl = freshUrl
  const useful = () => usefulBytes(session.opened?.part.metadata, session.opened?.part.bytes ?? 0)
  let budget = NEW_BUDGET

  async function tryOnce(): Promise<TryOutcome> {
    const url = parseOutputUrl(address)
    if (url === undefined)
      return new AttemptFailed('the URL is not an http or https URL', { isRetryable: false })
    try {
      const request = { fetch, url, signal, nowMs: clock.now() }
      return { ...(await transfer(request, session, meter)), url: address }
    } catch (error) {
      signal?.throwIfAborted()
      if (error instanceof AttemptFailed) return error
      throw error
    }
  }

  async function tryWithFreshUrl(failure: AttemptFailed): Promise<TryOutcome> {
    const askOnce = askForFreshUrl
    askForFreshUrl = undefined
    let fresh: string | undefined
    try {
      fresh = await askOnce?.()
    } catch (error) {
      signal?.throwIfAborted()
      const why = messageOf(error)
      const { status } = failure
      return new AttemptFailed(`${failure.message}, and the service gave no new link: ${why}`, {
        isRetryable: false,
        status,
        cause: error,
      })
    }
    if (fresh === undefined || fresh === address) return failure
    address = fresh
    return tryOnce()
  }

  return retry<TryOutcome, FetchedPart & { readonly url: string }>({
    clock,
    signal,
    async attempt() {
      const outcome = await tryOnce()
      return outcome instanceof AttemptFailed && mayHaveExpired(outcome) && askForFreshUrl !== undefined
        ? tryWithFreshUrl(outcome)
        : outcome
    },
    decide(outcome) {
      if (!(outcome instanceof AttemptFailed)) return { done: outcome }
      const { furthestBytes } = budget
      budget = afterFailedTry(budget, useful())
      const { failures, tries } = budget
      // The link may be refreshed once more after progress.
      if (budget.furthestBytes > furthestBytes) askForFreshUrl = freshUrl
      const retryInMs = tries < MAX_TRIES ? waitAfter(outcome, failures, random()) : undefined
      return retryInMs === undefined ? { fail: finalError(address, outcome, tries) } : { retryInMs }
    },
  })
}

function finalError(address: string, failure: AttemptFailed, tries: number): Error {
  const times = tries > 1 ? ` (tried ${tries} times)` : ''
  return downloadFailed(`Could not download ${printableUrl(address)}: ${failure.message}${times}`, {
    cause: failure,
    httpStatus: failure.status,
    hint: failure.cause instanceof HttpFailure ? failure.cause.advice : undefined,
  })
}

interface FetchedPart extends OpenedPart {
  readonly bytes: number
  readonly sha256: string
}

/**
 * Makes one attempt, from the request to a complete, checked part. Received bytes are kept in the part. Throws
 * `AttemptFailed` for the network, `RushesError` for the disk, and the signal's reason.
 */
export async function transfer(
  request: OutputRequest,
  session: PartSession,
  meter: FileMeter,
): Promise<FetchedPart> {
  const { opened } = session
  const part = opened?.part
  const plan = resumePlan(part?.metadata, part?.bytes ?? 0)
  meter.restart()
  if (opened === undefined || part === undefined || plan.kind === 'restart')
    return receiveAll(await sendRequest(request), request, session, meter)
  const response = await sendRequest({ ...request, from: plan })
  switch (continuationOf(plan, response.response)) {
    case 'append':
      return receiveRest(response, opened, request, meter)
    case 'restart':
      return receiveAll(response, request, session, meter)
    case 'mismatch':
      response.response.discard()
      await withWriteErrors(part.path, () => part.restart(undefined))
      return transfer(request, session, meter)
  }
}

/** Receives the file from its first byte. */
async function receiveAll(
  { response, url }: OutputResponse,
  { signal }: OutputRequest,
  session: PartSession,
  meter: FileMeter,
): Promise<FetchedPart> {
  meter.expect(declaredLength(response.header))
  let opened: OpenedPart | undefined
  try {
    for await (const chunks of inPieces(decoded(response, meter.receive, signal), HEAD_BYTES)) {
      if (opened === undefined) {
        const head = Buffer.concat(chunks)
        const kind = await kindOf({ contentType: response.header('content-type'), url, head })
        refuseWebPage(kind, session.expectedKind)
        opened = await session.open(kind)
        const { part, path } = opened
        await withWriteErrors(path, () => part.restart(metadataOf(response.header)))
      }
      const { part, path } = opened
      await withWriteErrors(path, () => part.write(chunks))
    }
    if (opened === undefined) throw new AttemptFailed('the response is empty', { isRetryable: true })
    return await sealed(opened, signal)
  } finally {
    response.discard()
  }
}

/** Receives the bytes that are missing in the part. */
async function receiveRest(
  { response }: OutputResponse,
  opened: OpenedPart,
  { signal }: OutputRequest,
  meter: FileMeter,
): Promise<FetchedPart> {
  try {
    const { part } = opened
    const totalBytes = part.metadata?.totalBytes ?? totalOf(response.header)
    meter.receive(part.bytes)
    meter.expect(totalBytes)
    for await (const chunks of inPieces(checked(response, meter.receive, signal)))
      await withWriteErrors(opened.path, () => part.write(chunks))
    return await sealed(opened, signal, totalBytes)
  } finally {
    response.discard()
  }
}

async function sealed(
  { part, path, kind }: OpenedPart,
  signal: AbortSignal | undefined,
  totalBytes = part.metadata?.totalBytes,
): Promise<FetchedPart> {
  if (totalBytes !== undefined && part.bytes !== totalBytes) {
    const { bytes } = part
    // If bytes are missing, the download can be resumed. If there are too many, it must restart.
    if (bytes > totalBytes) await withWriteErrors(path, () => part.restart(undefined))
    throw new AttemptFailed(`the parts of the file have ${bytes} bytes instead of ${totalBytes}`, {
      isRetryable: true,
    })
  }
  const content = await withWriteErrors(path, () => part.seal())
  signal?.throwIfAborted()
  return { part, path, kind, ...content }
}

/**
 * Throws if the response is a web page instead of media: captive portals and error pages answer with HTML and status
 * 200.
 */
function refuseWebPage({ extension }: FileKind, expectedKind: string | undefined): void {
  if (extension === 'html' && (expectedKind === 'image' || expectedKind === 'video'))
    throw new AttemptFailed(`the host sent a web page instead of the ${expectedKind}`, {
      isRetryable: true,
    })
}
