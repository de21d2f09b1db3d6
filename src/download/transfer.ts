/** One try: from the request to a whole, checked part file. What has arrived by then stays in the part. */
import type { HttpResponse } from '../host/http.js'
import { Miss } from './attempt-failed.js'
import { type Bytes, checked, declaredLength, decoded, withHead } from './checked-body.js'
import type { Meter } from './download-progress.js'
import { writing } from './file-errors.js'
import { type FileKind, HEAD_BYTES, kindOf } from './file-kind.js'
import { type Answer, ask, type Question } from './output-request.js'
import type { Part } from './part-file.js'
import type { Landing } from './part-session.js'
import { aboutOf, continuationOf, planOf, totalOf } from './resume-plan.js'

export interface Arrival {
  readonly part: Part
  readonly path: string
  readonly kind: FileKind
  readonly bytes: number
  readonly sha256: string
}

/** Throws `Miss` for the network's part, `RushesError` for the disk's, and the signal's reason. */
export async function transfer(question: Question, landing: Landing, meter: Meter): Promise<Arrival> {
  const { part } = landing
  const plan = planOf(part?.about, part?.bytes ?? 0)
  meter.restart()
  if (part === undefined || plan.kind === 'anew') return whole(await ask(question), question, landing, meter)
  if (plan.kind === 'whole') return finish(part, question, landing, meter)
  const answer = await ask({ ...question, from: plan })
  switch (continuationOf(plan, answer.response)) {
    case 'append':
      return rest(answer, part, question, landing, meter)
    case 'anew':
      return whole(answer, question, landing, meter)
    case 'whole':
      answer.response.discard()
      return finish(part, question, landing, meter)
    case 'mismatch':
      answer.response.discard()
      await writing(part.path, () => part.begin(undefined))
      return transfer(question, landing, meter)
  }
}

/** The file from its first byte. */
async function whole(
  { response, url }: Answer,
  { signal }: Question,
  landing: Landing,
  meter: Meter,
): Promise<Arrival> {
  meter.expect(declaredLength(response))
  let opened: Opened | undefined
  try {
    for await (const chunk of fileOf(response, meter, signal)) {
      if (opened === undefined) {
        const kind = await kindOf({ contentType: response.header('content-type'), url, head: chunk })
        refuseWebPage(kind, landing.expects)
        opened = { ...(await landing.open(kind)), kind }
        const { part, path } = opened
        await writing(path, () => part.begin(aboutOf(response.header)))
      }
      const { part, path } = opened
      await writing(path, () => part.write(chunk))
    }
    if (opened === undefined) throw new Miss('the answer is empty', { again: true })
    return await sealed(opened, signal)
  } catch (error) {
    await ended(response, opened)
    throw error
  }
}

/** What a part lacks. */
async function rest(
  { response, url }: Answer,
  part: Part,
  { signal }: Question,
  landing: Landing,
  meter: Meter,
): Promise<Arrival> {
  let opened: Opened | undefined
  try {
    opened = await openedAgain(part, url, landing)
    const totalBytes = part.about?.totalBytes ?? totalOf(response.header)
    meter.receive(part.bytes)
    meter.expect(totalBytes)
    await writing(opened.path, () => part.takeUp(signal))
    for await (const chunk of checked(response, meter.receive, signal))
      await writing(opened.path, () => part.write(chunk))
    return await sealed(opened, signal, totalBytes)
  } catch (error) {
    await ended(response, opened)
    throw error
  }
}

/** A part that holds everything: it was complete, and did not come to its name. */
async function finish(
  part: Part,
  { url, signal }: Question,
  landing: Landing,
  meter: Meter,
): Promise<Arrival> {
  const opened = await openedAgain(part, url, landing)
  meter.receive(part.bytes)
  await writing(opened.path, () => part.takeUp(signal))
  return sealed(opened, signal)
}

async function openedAgain(part: Part, url: URL, landing: Landing) {
  const head = await writing(part.path, () => part.head(HEAD_BYTES))
  const kind = await kindOf({ contentType: part.about?.contentType, url, head })
  return { ...(await landing.open(kind)), kind }
}

interface Opened {
  readonly part: Part
  readonly path: string
  readonly kind: FileKind
}

async function sealed(
  { part, path, kind }: Opened,
  signal: AbortSignal | undefined,
  totalBytes = part.about?.totalBytes,
): Promise<Arrival> {
  if (totalBytes !== undefined && part.bytes !== totalBytes) {
    const had = part.bytes
    // Fewer is a beginning to go on from; more is nothing at all.
    if (had > totalBytes) await writing(path, () => part.begin(undefined))
    throw new Miss(`the parts of the file come to ${had} bytes and not to ${totalBytes}`, { again: true })
  }
  const held = await writing(path, () => part.seal())
  signal?.throwIfAborted()
  return { part, path, kind, ...held }
}

/** A disk that failed is the reason, whatever came after: the network's trouble alone is tried again. */
async function ended(response: HttpResponse, opened: Opened | undefined): Promise<void> {
  response.discard()
  if (opened !== undefined) await writing(opened.path, () => opened.part.settled())
}

/** A portal that wants a password, or a page that says sorry, with status 200. */
function refuseWebPage({ extension }: FileKind, expects: string | undefined): void {
  if (extension === 'html' && (expects === 'image' || expects === 'video'))
    throw new Miss(`the host sent a web page in place of the ${expects}`, { again: true })
}

const fileOf = (response: HttpResponse, meter: Meter, signal: AbortSignal | undefined): Bytes =>
  withHead(decoded(checked(response, meter.receive, signal), response.header('content-encoding')), HEAD_BYTES)
