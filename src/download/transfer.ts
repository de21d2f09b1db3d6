/** One try: from the request to a whole, checked part file, or nothing left behind. */
import type { HttpResponse } from '../host/http.js'
import { ask, type Question } from './answer.js'
import { type Bytes, checked, declaredLength, decoded, withHead } from './body.js'
import { type FileKind, HEAD_BYTES, kindOf } from './kind.js'
import { Miss } from './miss.js'
import type { Part } from './part.js'
import type { Meter } from './progress.js'
import { writing } from './trouble.js'

/** Opens the part file once it is known what will be in it, and says what the whole file will be called. */
export type Opening = (kind: FileKind) => Promise<{ readonly part: Part; readonly path: string }>

export interface Arrival {
  readonly part: Part
  readonly path: string
  readonly kind: FileKind
  readonly bytes: number
  readonly sha256: string
}

/** Throws `Miss` for the network's part, `RushesError` for the disk's, and the signal's reason. */
export async function transfer(question: Question, open: Opening, meter: Meter): Promise<Arrival> {
  meter.restart()
  const { response, url } = await ask(question)
  meter.expect(declaredLength(response))
  const head = { contentType: response.header('content-type'), url }
  let opened: { readonly part: Part; readonly path: string; readonly kind: FileKind } | undefined
  try {
    for await (const chunk of fileOf(response, meter, question.signal)) {
      if (opened === undefined) {
        const kind = await kindOf({ ...head, head: chunk })
        opened = { ...(await open(kind)), kind }
      }
      const { part, path } = opened
      await writing(path, () => part.write(chunk))
    }
    if (opened === undefined) throw new Miss('the answer is empty', { again: true })
    const { part, path, kind } = opened
    const sealed = await writing(path, () => part.seal())
    question.signal?.throwIfAborted()
    return { part, path, kind, ...sealed }
  } catch (error) {
    response.discard()
    await opened?.part.discard()
    throw error
  }
}

const fileOf = (response: HttpResponse, meter: Meter, signal: AbortSignal | undefined): Bytes =>
  withHead(decoded(checked(response, meter.receive, signal), response.header('content-encoding')), HEAD_BYTES)
