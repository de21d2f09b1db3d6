/** Files of the browser as reference images. */
import { imageTypeOf } from '../../protocol/image-signatures.js'
import { printable } from '../../protocol/text.js'
import { fileProblem, type Reference } from './reference-list.js'

let count = 0

export const referenceOfUrl = (url: string): Reference => ({
  id: ++count,
  name: printable(url),
  source: url,
  bytes: 0,
  isUrl: true,
})

export interface ReadFiles {
  readonly references: readonly Reference[]
  /** As sentences. */
  readonly problems: readonly string[]
}

/** The type of a file is what its first bytes say, whatever its name is. */
export async function readFiles(files: readonly File[]): Promise<ReadFiles> {
  const references: Reference[] = []
  const problems: string[] = []
  for (const file of files) {
    const name = printable(file.name) || 'The image'
    try {
      const head = new Uint8Array(await file.slice(0, 64).arrayBuffer())
      const problem = fileProblem(name, head, file.size)
      if (problem === undefined) references.push(await referenceOf(file, name, imageTypeOf(head) ?? ''))
      else problems.push(problem)
    } catch {
      problems.push(`${name} could not be read.`)
    }
  }
  return { references, problems }
}

async function referenceOf(file: File, name: string, type: string): Promise<Reference> {
  const blob = new Blob([file], { type })
  return {
    id: ++count,
    name,
    source: await dataUrlOf(blob),
    preview: URL.createObjectURL(blob),
    bytes: file.size,
    isUrl: false,
  }
}

const dataUrlOf = (blob: Blob): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(blob)
  })
