/** What is stored of a request, and when two requests are the same. Pure. */
import { createHash } from 'node:crypto'

export interface DataSummary {
  /** 64 hexadecimal digits, of the decoded bytes. */
  readonly sha256: string
  readonly bytes: number
  readonly content_type: string
}

const DATA_URL = /^data:([^,;]*)((?:;[^,;]*)*),(.*)$/is

/** Identifies the content of a data: URL; undefined for any other text. */
export function summaryOf(text: string): DataSummary | undefined {
  if (!/^data:/i.test(text)) return undefined
  const [, type = '', parameters = '', payload = ''] = DATA_URL.exec(text) ?? []
  const bytes = /;\s*base64\s*$/i.test(parameters)
    ? Buffer.from(payload, 'base64')
    : Buffer.from(unescaped(payload), 'utf8')
  return {
    sha256: createHash('sha256').update(bytes).digest('hex'),
    bytes: bytes.byteLength,
    content_type: type.trim().toLowerCase() || 'text/plain',
  }
}

const unescaped = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Replaces every data: URL by its summary, since images are too large for the journal. */
export function withoutData(value: unknown): unknown {
  if (typeof value === 'string') return summaryOf(value) ?? value
  if (Array.isArray(value)) return value.map(withoutData)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, withoutData(each)]))
}

/** Equal for the same model and input; the order of fields does not matter. */
export const identityOf = (model: string, input: unknown): string =>
  createHash('sha256')
    .update(canonical({ model, input: withoutData(input) }))
    .digest('hex')

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const fields = Object.entries(value)
    .filter(([, each]) => each !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return `{${fields.map(([name, each]) => `${JSON.stringify(name)}:${canonical(each)}`).join(',')}}`
}
