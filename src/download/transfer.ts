/** One attempt: from the request to a complete, checked part file. What has arrived stays in the part. */

import type { Clock } from '../host/clock.js'
import type { HttpResponse } from '../host/http.js'
import { AttemptFailed } from './attempt-failed.js'
import { type Bytes, checked, declaredLength, decoded, withHead } from './checked-body.js'
import type { FileMeter } from './download-progress.js'
import { withWriteErrors } from './file-errors.js'
import { type FileKind, HEAD_BYTES, kindOf } from './file-kind.js'
import { type OutputRequest, type OutputResponse, sendRequest } from './output-request.js'
import type { Part } from './part-file.js'
import type { PartSession } from './part-session.js'
import { inPieces } from './pieces.js'
import { continuationOf, metadataOf, resumePlan, totalOf } from './resume-plan.js'

export interface FetchedPart {
  readonly part: Part
  readonly path: string
  readonly kind: FileKind
  readonly bytes: number
  readonly sha256: string
}

export interface TransferRequest extends OutputRequest {
  readonly alarm: Clock['alarm']
}

/** Throws `AttemptFailed` for the network, `RushesError` for the disk, and the signal's reason. */
export async function transfer(
  request: TransferRequest,
  session: PartSession,
  meter: FileMeter,
): Promise<FetchedPart> {
  const { part } = session
  const plan = resumePlan(part?.metadata, part?.bytes ?? 0)
  meter.restart()
  if (part === undefined || plan.kind === 'restart')
    return receiveAll(await sendRequest(request), request, session, meter)
  if (plan.kind === 'complete') return finishComplete(part, request, session, meter)
  const response = await sendRequest({ ...request, from: plan })
  switch (continuationOf(plan, response.response)) {
    case 'append':
      return receiveRest(response, part, request, session, meter)
    case 'restart':
      return receiveAll(response, request, session, meter)
    case 'complete':
      response.response.discard()
      return finishComplete(part, request, session, meter)
    case 'mismatch':
      response.response.discard()
      await withWriteErrors(part.path, () => part.restart(undefined))
      return transfer(request, session, meter)
  }
}

/** The file from its first byte. */
async function receiveAll(
  { response, url }: OutputResponse,
  { signal, alarm }: TransferRequest,
  session: PartSession,
  meter: FileMeter,
): Promise<FetchedPart> {
  meter.expect(declaredLength(response))
  let opened: OpenedPart | undefined
  try {
    for await (const chunks of inPieces(fileOf(response, meter, signal), alarm)) {
      if (opened === undefined) {
        const [head = new Uint8Array()] = chunks
        const kind = await kindOf({ contentType: response.header('content-type'), url, head })
        refuseWebPage(kind, session.expectedKind)
        opened = { ...(await session.open(kind)), kind }
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

/** The bytes after those that the part has. */
async function receiveRest(
  { response, url }: OutputResponse,
  part: Part,
  { signal, alarm }: TransferRequest,
  session: PartSession,
  meter: FileMeter,
): Promise<FetchedPart> {
  try {
    const opened = await reopened(part, url, session)
    const totalBytes = part.metadata?.totalBytes ?? totalOf(response.header)
    meter.receive(part.bytes)
    meter.expect(totalBytes)
    await withWriteErrors(opened.path, () => part.hashExisting(signal))
    for await (const chunks of inPieces(checked(response, meter.receive, signal), alarm))
      await withWriteErrors(opened.path, () => part.write(chunks))
    return await sealed(opened, signal, totalBytes)
  } finally {
    response.discard()
  }
}

/** The part has all bytes: a process ended before it moved the file. */
async function finishComplete(
  part: Part,
  { url, signal }: OutputRequest,
  session: PartSession,
  meter: FileMeter,
): Promise<FetchedPart> {
  const opened = await reopened(part, url, session)
  meter.receive(part.bytes)
  await withWriteErrors(opened.path, () => part.hashExisting(signal))
  return sealed(opened, signal)
}

async function reopened(part: Part, url: URL, session: PartSession): Promise<OpenedPart> {
  const head = await withWriteErrors(part.path, () => part.head(HEAD_BYTES))
  const kind = await kindOf({ contentType: part.metadata?.contentType, url, head })
  return { ...(await session.open(kind)), kind }
}

interface OpenedPart {
  readonly part: Part
  readonly path: string
  readonly kind: FileKind
}

async function sealed(
  { part, path, kind }: OpenedPart,
  signal: AbortSignal | undefined,
  totalBytes = part.metadata?.totalBytes,
): Promise<FetchedPart> {
  if (totalBytes !== undefined && part.bytes !== totalBytes) {
    const { bytes } = part
    // Fewer bytes can be resumed from; more are useless.
    if (bytes > totalBytes) await withWriteErrors(path, () => part.restart(undefined))
    throw new AttemptFailed(`the parts of the file have ${bytes} bytes instead of ${totalBytes}`, {
      isRetryable: true,
    })
  }
  const content = await withWriteErrors(path, () => part.seal())
  signal?.throwIfAborted()
  return { part, path, kind, ...content }
}

/** Captive portals and error pages answer with HTML and status 200. */
function refuseWebPage({ extension }: FileKind, expectedKind: string | undefined): void {
  if (extension === 'html' && (expectedKind === 'image' || expectedKind === 'video'))
    throw new AttemptFailed(`the host sent a web page instead of the ${expectedKind}`, {
      isRetryable: true,
    })
}

const fileOf = (response: HttpResponse, meter: FileMeter, signal: AbortSignal | undefined): Bytes =>
  withHead(decoded(checked(response, meter.receive, signal), response.header('content-encoding')), HEAD_BYTES)
