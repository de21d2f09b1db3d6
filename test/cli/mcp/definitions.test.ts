import { Ajv } from 'ajv'
import { describe, expect, it } from 'vitest'
import { resultOf } from '../../../src/cli/mcp/answers.js'
import { type Tool, type ToolName, toolsFor } from '../../../src/cli/mcp/definitions.js'
import { checkArguments } from '../../../src/cli/mcp/serve.js'
import { readModelDocument } from '../../../src/protocol/model-document.js'
import { builtInSchema, KINDS } from '../../../src/protocol/models.js'

const TOOLS: Readonly<Record<ToolName, Tool>> = toolsFor({ maxRuns: 20, isLocal: false, documents: {} })

describe('the definitions', () => {
  it('have valid schemas, and a description for each parameter', () => {
    const ajv = new Ajv({ strict: false })
    for (const [name, { inputSchema }] of Object.entries(TOOLS)) {
      expect(ajv.validateSchema(inputSchema), name).toBe(true)
      for (const [parameter, schema] of Object.entries(inputSchema.properties))
        expect(schema.description, `${name}: ${parameter}`).toEqual(expect.any(String))
    }
  })

  it.each(KINDS)(
    'create_%s takes each parameter of the model, and none is hidden by one of its own',
    (kind) => {
      const own = Object.keys(TOOLS.create_model_run.inputSchema.properties)
      for (const [name, { type }] of Object.entries(builtInSchema(kind).properties)) {
        expect(TOOLS[`create_${kind}`].inputSchema.properties[name]).toMatchObject({ type })
        expect(own).not.toContain(name)
      }
    },
  )

  it('show of a document only keywords that clients understand, and no argument of the tool itself', () => {
    const document = readModelDocument(
      {
        name: 'acme/still-2',
        kind: 'image',
        input: {
          type: 'object',
          description: 'Draws\u001b[31m',
          required: ['output', 'steps'],
          properties: {
            steps: { type: 'integer', maximum: 9, pattern: '(', $ref: '#/x', description: 'How many\u0007' },
            output: { type: 'integer' },
            deep: { $ref: '#/missing' },
            tags: { type: 'array', items: { type: 'string', enum: ['a'], pattern: '^(a+)+$', $ref: '#/x' } },
            long: { type: 'string', description: 'x'.repeat(9_999), items: { enum: [] } },
          },
        },
      },
      (_, message) => expect.unreachable(message),
    )
    const documents = { image: document ?? expect.unreachable() }
    const { description, inputSchema }: Tool = toolsFor({ maxRuns: 3, isLocal: true, documents }).create_image
    expect(inputSchema.required).toEqual(['steps'])
    expect(inputSchema.properties.steps).toEqual({ type: 'integer', maximum: 9, description: 'How many' })
    expect(inputSchema.properties.tags).toMatchObject({ items: { type: 'string', enum: ['a'] } })
    expect(Object.keys(inputSchema.properties.tags?.items ?? {})).toEqual(['type', 'enum'])
    expect(inputSchema.properties.deep).toEqual({ description: 'JSON, see list_models' })
    expect(inputSchema.properties.long).toEqual({ type: 'string', description: `${'x'.repeat(299)}…` })
    expect(inputSchema.properties.output).toMatchObject({ type: 'string' })
    expect(inputSchema.properties).not.toHaveProperty('prompt')
    expect(description).toMatch(/^Create an image with acme\/still-2\. Free: .* At most 3 runs per session\./)
  })
})

describe('arguments', () => {
  it.each<[ToolName, object, string]>([
    ['wait_run', { id: 'a' }, "wait_run must have required property 'ids'."],
    ['wait_run', { ids: [3] }, 'ids/0 must be string.'],
    ['wait_run', { ids: ['', 'a'] }, 'ids/0 must NOT have fewer than 1 characters.'],
    [
      'create_model_run',
      { model: 'a/b', input: {}, request_id: 'x'.repeat(201) },
      'request_id must NOT have more than 200 characters.',
    ],
    [
      'create_model_run',
      { request_id: 'x', model: 'a/b', input: { seed: JSON.parse('9007199254740993') } },
      'input.seed is a number whose digits cannot be kept. Nothing was sent.',
    ],
  ])('%s %j', (name, args, message) => {
    expect(() => checkArguments(name, TOOLS[name], { ...args })).toThrow(message)
  })
})

describe('a result', () => {
  const file = { path: '/a b/ä.mp4', bytes: 3, content_type: 'video/mp4' }

  it('has a link for each file', async () => {
    const answer = { next: ['done'], files: [file] }
    const uri = 'file:///a%20b/%C3%A4.mp4'
    const link = { type: 'resource_link', uri, name: 'ä.mp4', mimeType: 'video/mp4', size: 3 }
    expect((await resultOf(answer)).content).toEqual([{ type: 'text', text: 'done' }, link])
  })

  it('has no control characters in text and values, and keeps line ends', async () => {
    const text = 'a\u001b[31m\u202e\u0085b\nc\td\\u0085'
    const clean = 'a[31mb\nc\td\\u0085'
    const result = await resultOf({ next: [text], structured: { deep: [{ text }], n: 1, no: null } })
    expect(result.content).toMatchObject([{ type: 'text', text: expect.stringContaining(`${clean}\n{`) }])
    expect(result.structuredContent).toEqual({
      next: [clean],
      deep: [{ text: clean }],
      n: 1,
      no: null,
      warnings: [],
    })
  })
})
