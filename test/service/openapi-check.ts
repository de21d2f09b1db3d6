/**
 * Checks real requests and responses against the service's OpenAPI document. An undocumented status or code is a
 * problem, and so is a key that the document does not name.
 */
import { Ajv2020 } from 'ajv/dist/2020.js'
import { REFUSALS, type RefusalCode } from '../../src/service/rules/refusal.js'
import { openapiDocument } from '../docs/openapi-document.js'
import { closed } from '../support/schemas.js'

interface DocumentedResponse {
  readonly $ref?: string
  readonly content?: Readonly<Record<string, { readonly schema?: object }>>
}

interface Operation {
  readonly operationId: string
  readonly requestBody?: { readonly content: { readonly 'application/json': { readonly schema: object } } }
  readonly responses: Readonly<Record<string, DocumentedResponse>>
}

interface OpenapiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: {
    readonly responses: Readonly<Record<string, DocumentedResponse>>
    readonly schemas: Readonly<Record<string, object>>
  }
}

export interface Exchange {
  readonly method: string
  readonly path: string
  readonly status: number
  /** Parsed if it is JSON, else text. */
  readonly body: unknown
}

const DOCUMENT = 'https://document.test/'
const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/

const pointer = (...words: readonly string[]): string =>
  `${DOCUMENT}#/${words.map((word) => encodeURIComponent(word.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')}`

const createAjv = (document: object) =>
  new Ajv2020({ strict: false, formats: { 'date-time': DATE_TIME, uri: URL.canParse } }).addSchema(
    document,
    DOCUMENT,
  )

export function createDocumentCheck() {
  const document: OpenapiDocument = openapiDocument()
  // A run keeps every field of a model's input.
  const strict = createAjv(closed(document, (name) => name.endsWith('Input')) as object)
  const open = createAjv(document)
  const metResponses = new Set<string>()
  /** Every response of the document, with its position. */
  const documented = [
    ...Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.entries(operations).flatMap(([method, { responses }]) =>
        Object.entries(responses).map(
          ([status, response]) => [['paths', path, method, 'responses', status], response] as const,
        ),
      ),
    ),
    ...Object.entries(document.components.responses).map(
      ([name, response]) => [['components', 'responses', name], response] as const,
    ),
  ]

  /** Returns the operation for a path, and its position in the document. */
  function operationOf(method: string, path: string) {
    const word = method === 'HEAD' ? 'get' : method.toLowerCase()
    const [template, operations] =
      Object.entries(document.paths).find(([each]) =>
        new RegExp(`^${each.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`).test(path),
      ) ?? []
    const operation = operations?.[word]
    return operation && { operation, at: ['paths', template ?? '', word, 'responses'] }
  }

  /**
   * Returns the documented response and its position in the document. The default response if this status is not
   * documented.
   */
  function responseOf(method: string, path: string, status: number) {
    const found = operationOf(method, path)
    const own = found?.operation.responses[status]
    if (own !== undefined) return { response: own, at: [...(found?.at ?? []), String(status)] }
    const { BeforeOperations: response } = document.components.responses
    return { response, at: ['components', 'responses', 'BeforeOperations'] }
  }

  return {
    document,

    /** Returns the differences between a response and the document. Empty if it conforms. */
    problemsOf({ method, path, status, body }: Exchange): readonly string[] {
      const { response, at } = responseOf(method, path.replace(/\?.*$/, ''), status)
      const code = (body as { error?: { code?: RefusalCode } } | undefined)?.error?.code
      const isJson = typeof body === 'object'
      metResponses.add([...at, ...(isJson && code !== undefined ? [code] : [])].join(' '))
      const name = `${method} ${path} ${status}`
      if (code !== undefined && status >= 400 && REFUSALS[code]?.status !== status)
        return [`${name}: ${code} has another status`]
      const types = Object.keys(response?.content ?? {})
      if (!isJson) return types.includes('application/json') ? [`${name}: not JSON`] : []
      if (!types.includes('application/json')) return [`${name}: JSON is not documented`]
      const validate = strict.getSchema(pointer(...at, 'content', 'application/json', 'schema'))
      if (validate?.(body) === true) return []
      return [`${name}: ${JSON.stringify(body)} ${strict.errorsText(validate?.errors)}`]
    },

    /** Whether the document accepts this request body. */
    accepts(path: string, body: unknown): boolean {
      const at = ['paths', path, 'post', 'requestBody', 'content', 'application/json', 'schema']
      return open.getSchema(pointer(...at))?.(body) === true
    },

    /** Returns the documented responses, each with its code, that no request has caused. */
    unmet: (): readonly string[] =>
      documented
        .filter(([, { $ref }]) => $ref === undefined)
        .flatMap(([at, response]) => {
          const codes = codesOf(response)
          return codes.length === 0 ? [at.join(' ')] : codes.map((code) => [...at, code].join(' '))
        })
        .filter((each) => !metResponses.has(each)),

    /** Returns every error code in the document. */
    codes: (): ReadonlySet<string> => new Set(documented.flatMap(([, response]) => codesOf(response))),
  }
}

function codesOf({ content }: DocumentedResponse): readonly string[] {
  const schema = content?.['application/json']?.schema as
    | { properties?: { error?: { properties?: { code?: { enum?: string[] } } } } }
    | undefined
  return schema?.properties?.error?.properties?.code?.enum ?? []
}
