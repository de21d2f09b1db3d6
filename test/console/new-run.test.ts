/** The form of a new run: fields, input, price, what was typed, images, and what a refusal says. */

import fc from 'fast-check'
import { describe, expect, it, onTestFinished, test, vi } from 'vitest'
import { failureOf, fieldMessages, unknownOutcome } from '../../src/console/runs/create-failure.js'
import {
  canResend,
  type Draft,
  draftOf,
  drafts,
  draftText,
  EMPTY_DRAFT,
  withContent,
  withKey,
} from '../../src/console/runs/drafts.js'
import {
  fieldProblems,
  fieldsOf,
  filledForm,
  inputOf,
  shapeOf,
  valuesForModel,
} from '../../src/console/runs/form-fields.js'
import {
  fileProblem,
  isTooLarge,
  MAX_FILE_BYTES,
  moved,
  type Reference,
  urlProblem,
  urlsIn,
} from '../../src/console/runs/references.js'
import { KINDS, MODEL_INPUTS } from '../../src/protocol/models.js'
import { builtInSchema } from '../../src/protocol/parameters.js'
import { priceOf } from '../../src/protocol/price.js'
import { inputProblems } from '../../src/protocol/validate.js'
import { PREVIEW_DOCUMENTS } from '../../src/service/models/served-model.js'
import { readCreate } from '../../src/service/rules/create-request.js'
import { Refusal } from '../../src/service/rules/refusal.js'
import { anyCharacter } from '../support/any-character.js'
import { FLUX, UPSCALE } from './models.js'

const { image: IMAGE, video: VIDEO } = PREVIEW_DOCUMENTS

/** What the service says of an input. */
function refusalOf(input: unknown, document = IMAGE): string {
  try {
    readCreate(Buffer.from(JSON.stringify({ model: document.name, input })), [document])
  } catch (error) {
    if (error instanceof Refusal) return error.message
  }
  throw new Error('not refused')
}

describe('the form fields', () => {
  it.each(KINDS)('match the parameters of the %s schema, the prompt first', (kind) => {
    const fields = fieldsOf(PREVIEW_DOCUMENTS[kind])
    expect(fields[0]?.name).toBe('prompt')
    expect(fields.map(({ name }) => name).toSorted()).toEqual(
      Object.keys(MODEL_INPUTS[kind].properties).toSorted(),
    )
  })

  it('have a label, choices and the default of the service', () => {
    expect(fieldsOf(IMAGE).map(({ label, choices, standard }) => [label, choices.length, standard])).toEqual([
      ['Prompt', 0, undefined],
      ['Aspect ratio', 8, '1:1'],
      ['Quality', 2, 'basic'],
      ['Reference images', 0, undefined],
    ])
  })

  it('follow any model document: required first, images last, with limits and defaults', () => {
    expect(
      fieldsOf(FLUX).map(({ name, choices, hint, standard }) => [name, choices.length, hint, standard]),
    ).toEqual([
      ['prompt', 0, undefined, undefined],
      ['lora', 0, 'Name of the LoRA. Text of at most 5 characters', undefined],
      ['aspect_ratio', 8, 'Width to height', undefined],
      ['steps', 0, 'Denoising steps. A whole number from 1 to 50', '20'],
      ['cfg.scale', 0, 'A number', undefined],
      ['tiling', 2, undefined, 'false'],
      ['sampler', 13, undefined, undefined],
      ['words', 0, 'One per line, at most 2', 'a\nb'],
      ['control', 0, 'JSON', undefined],
      ['image_urls', 0, 'Reference image to edit or to follow. One per line, at most 14', undefined],
    ])
  })
})

describe('the input', () => {
  it('leaves out empty fields, and keeps the prompt as it was typed', () => {
    expect(inputOf(IMAGE, { prompt: ' a fox\n', quality: '', aspect_ratio: '16:9' }, [])).toEqual({
      prompt: ' a fox\n',
      aspect_ratio: '16:9',
    })
    expect(inputOf(VIDEO, { duration: '5', quality: 'high' }, ['https://e.test/a'])).toEqual({
      duration: '5',
      image_urls: ['https://e.test/a'],
    })
  })

  it('contains the default of a required field that is empty', () =>
    expect(inputOf(UPSCALE, { scale: ' ' }, [])).toEqual({ scale: 2 }))

  it('follows the types of the document, and fills the form with the same values again', () => {
    const input = {
      ...{ prompt: 'a fox', lora: 'x\ny', steps: 30, 'cfg.scale': 3.5, tiling: true, sampler: 's13' },
      ...{ words: ['a', 'b'], control: { type: 'depth', ids: [1] } },
    }
    const { values, unknown } = filledForm(FLUX, input)
    expect(inputOf(FLUX, values, [])).toEqual(input)
    expect(unknown).toEqual([])
  })

  it.each(KINDS)('of the %s model matches the schema for every choice', (kind) => {
    for (const { name, choices } of fieldsOf(PREVIEW_DOCUMENTS[kind]))
      for (const { value: choice } of choices)
        expect(
          inputProblems(
            builtInSchema(kind),
            inputOf(PREVIEW_DOCUMENTS[kind], { prompt: 'a fox', [name]: choice }, []),
          ),
        ).toEqual([])
  })

  it('gets the problems that the service finds, and those of invalid JSON, before it is sent', () => {
    const values = {
      ...{
        lora: 'abcdef',
        steps: '70',
        'cfg.scale': '36893488147419103233',
        words: 'a\nb\nc',
        sampler: 's14',
      },
      ...{ control: '{"a":' },
    }
    const problems = fieldProblems(FLUX, values, [])
    expect(problems).toEqual({
      prompt: 'Enter a value.',
      lora: 'This must have at most 5 characters, not 6.',
      steps: 'This must be a whole number from 1 to 50, not 70.',
      'cfg.scale': expect.stringContaining('must have fewer digits'),
      sampler: expect.stringContaining('must be one of'),
      words: 'This takes at most 2, not 3.',
      control: 'This must be valid JSON.',
    })
    const { control: _, ...others } = problems
    const input = inputOf(FLUX, values, [])
    expect(fieldMessages(refusalOf(input, FLUX))).toEqual(others)
    expect(fieldProblems(FLUX, { prompt: 'a', lora: 'b', control: '[36893488147419103233]' }, [])).toEqual({
      control: 'This has a number with more digits than JSON can send.',
    })
  })

  it.each([
    [IMAGE, {}, 1],
    [IMAGE, { quality: 'high' }, 2],
    [VIDEO, {}, 5],
    [VIDEO, { resolution: '1080p', duration: '10' }, 20],
    [UPSCALE, { scale: '4' }, 1.5],
    [FLUX, { steps: '50' }, undefined],
  ] as const)('of %o with %o costs %s', (model, values, price) =>
    expect(priceOf(model, inputOf(model, values, []))).toBe(price),
  )

  it('of a run fills the form, which names lost images and unknown fields', () => {
    const input = {
      ...{ prompt: 'a fox', quality: 'high', seed: 3 },
      image_urls: ['https://e.test/a', { sha256: 'x', bytes: 1, content_type: 'image/png' }],
    }
    const { values, urls, lostImages, unknown } = filledForm(IMAGE, input)
    expect(inputOf(IMAGE, values, urls)).toEqual({
      ...{ prompt: 'a fox', quality: 'high' },
      image_urls: ['https://e.test/a'],
    })
    expect({ lostImages, unknown }).toEqual({ lostImages: 1, unknown: ['seed'] })
  })

  it.each([[null], [{}], [{ prompt: null, image_urls: null }], [{ image_urls: 'x', prompt: {} }]])(
    'of any shape fills the form without an error: %j',
    (input) => expect(() => filledForm(VIDEO, input ?? {})).not.toThrow(),
  )

  it('keeps the values of another model that fit, and values of fields that it lacks', () => {
    const values = { prompt: 'a fox', aspect_ratio: '2:3', quality: 'high' }
    expect(inputOf(VIDEO, valuesForModel(VIDEO, values), [])).toEqual({ prompt: 'a fox' })
    expect(inputOf(IMAGE, valuesForModel(VIDEO, values), [])).toEqual({ prompt: 'a fox', quality: 'high' })
    const wide = { ...values, aspect_ratio: '21:9', lora: 'abcdef', prompt: 'x'.repeat(100) }
    expect(valuesForModel(VIDEO, wide)).toEqual(wide)
    expect(valuesForModel(FLUX, wide)).toEqual({ ...wide, lora: undefined })
  })

  it.each([
    ['1:1', 20, 20],
    ['16:9', 20, 11],
    ['9:16', 11, 20],
    ['21:9', 20, 9],
  ])('shows the aspect ratio %s as a shape of %i × %i', (ratio, width, height) =>
    expect(shapeOf(ratio)).toEqual({ width, height }),
  )
})

const reference = (id: number, source = 'https://e.test/a', isUrl = true): Reference => ({
  ...{ id, source, name: `${id}.png`, bytes: 0, isUrl },
})

describe('a saved draft', () => {
  const content = { ...EMPTY_DRAFT, model: 'a/video', values: { prompt: 'a fox', duration: '10' } } as const
  const kept = (draft: Draft, owner = 'a') => draftOf(draftText(draft, 'a'), owner)
  it('returns only for its user, with the URLs of images', () => {
    expect(kept({ ...content, references: [reference(1), reference(2, 'data:,', false)] })).toEqual({
      ...content,
      references: [expect.objectContaining({ source: 'https://e.test/a', isUrl: true })],
    })
    expect(kept(content, 'b')).toBeUndefined()
  })
  it.each([[null], [''], ['{'], ['[]'], ['{"model":"a/image","owner":"a"}']])(
    'is ignored if its text is %j',
    (text) => expect(draftOf(text, 'a')).toBeUndefined(),
  )
  it('drops values that are not text', () => {
    const text =
      '{"model":1,"values":{"prompt":{},"quality":"high"},"urls":[1,"x"],"key":"k","mayExist":1,"owner":"a"}'
    expect(draftOf(text, 'a')).toMatchObject({
      ...{ model: undefined, values: { quality: 'high' }, references: [], mayExist: false },
    })
    expect(draftOf(text, 'a')?.key).toBeUndefined()
  })
  it('disappears when the storage has no room for its change', () => {
    const stored = new Map<string, string>()
    const room = { characters: 10_000 }
    vi.stubGlobal('sessionStorage', {
      getItem: (name: string) => stored.get(name) ?? null,
      removeItem: (name: string) => stored.delete(name),
      setItem(name: string, text: string) {
        if (text.length > room.characters) throw new DOMException('full', 'QuotaExceededError')
        stored.set(name, text)
      },
    })
    onTestFinished(() => void vi.unstubAllGlobals())
    drafts.edit({ name: 'new', start: EMPTY_DRAFT }, () => ({ values: { prompt: 'a fox' } }))
    expect([...stored.values()]).toEqual([expect.stringContaining('a fox')])
    room.characters = 0
    drafts.edit({ name: 'new', start: EMPTY_DRAFT }, () => ({ values: { prompt: 'a wolf' } }))
    expect(stored.size).toBe(0)
    drafts.forget('new')
  })
  it('keeps its idempotency key over a reload only if its content is complete', () => {
    const sent = { ...withKey(content, 5, () => 'one'), mayExist: true }
    for (const references of [[], [reference(1)]])
      expect(kept({ ...sent, references })).toMatchObject({ key: 'one', sentAtMs: 5, mayExist: true })
    // Images from files are lost by a reload.
    const later = kept({ ...sent, references: [reference(1, 'data:,', false)] })
    expect([later?.key, later?.mayExist]).toEqual([undefined, true])
  })
})

describe('the idempotency key of a form', () => {
  const HOUR_MS = 3_600_000
  let keys = 0
  const send = (of: Draft, nowMs = 0) => withKey(of, nowMs, () => `key ${++keys}`)
  const first = send({ ...EMPTY_DRAFT, values: { prompt: 'a fox' } })

  test.each([
    ['stays the same while the content does', true, send(first)],
    ['stays the same for 22 hours', true, send(first, 22 * HOUR_MS)],
    ['is new after a day', false, send(first, 24 * HOUR_MS)],
    ['is new a day after its first request', false, send(send(first, 22 * HOUR_MS), 24 * HOUR_MS)],
    ['is new after an edit', false, send(withContent(first, { values: { prompt: 'a wolf' } }))],
    ['is new after an edit that was taken back', false, send(withContent(first, { values: first.values }))],
    ['is new for another model', false, send(withContent(first, { model: 'n' }))],
  ])('%s', (_, isSame, again) => {
    expect(again.key === first.key).toBe(isSame)
    expect(again.key).toMatch(/^key /)
  })

  it('allows a safe resend only with the content that was sent', () => {
    expect(canResend(first, 0)).toBe(true)
    expect(canResend(withContent(first, {}), 0)).toBe(false)
  })
})

const PNG = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0])
describe('reference images', () => {
  it.each<[string, Uint8Array, number, string | undefined]>([
    ['a.png', PNG, 10, undefined],
    ['a.jpg', PNG, 10, undefined],
    ['a.png', Buffer.from('<svg>'), 5, 'a.png is not a PNG, JPEG, WebP, GIF or AVIF image.'],
    ['a.png', new Uint8Array(), 0, 'a.png is empty.'],
    ['a.png', PNG, MAX_FILE_BYTES, undefined],
    ['a.png', PNG, MAX_FILE_BYTES + 1, 'a.png is larger than 48 MB. Use a smaller image, or its URL.'],
  ])('%s %o of %i bytes: %s', (name, bytes, size, problem) =>
    expect(fileProblem(name, bytes, size)).toBe(problem),
  )

  it('count as too large when together they exceed the limit of the body', () => {
    const half = 'x'.repeat(32 * 1024 * 1024)
    expect(isTooLarge([reference(1, half)])).toBe(false)
    expect(isTooLarge([reference(1, half), reference(2, half)])).toBe(true)
  })

  it.each([
    [0, 1, '2,1,3'],
    [2, 0, '3,1,2'],
    [0, -1, '1,2,3'],
    [2, 3, '1,2,3'],
    [7, 0, '1,2,3'],
  ])('moved from %i to %i have the order %s', (from, to, order) =>
    expect(
      moved([reference(1), reference(2), reference(3)], from, to)
        .map(({ id }) => id)
        .join(),
    ).toBe(order),
  )

  it('must be http or https URLs', () => {
    expect(urlProblem('https://e.test/a.png')).toBeUndefined()
    expect(urlProblem('javascript:alert(1)')).toContain('is not a URL that begins with')
    expect(urlsIn('# list\r\nhttps://e.test/a\r\nfile:///etc/passwd\nfox\nhttp://e.test/b')).toEqual([
      'https://e.test/a',
      'http://e.test/b',
    ])
  })
})

describe('a refusal', () => {
  it('appears at the fields that the service names', () => {
    const message = refusalOf({ prompt: 'a', quality: 'hi', aspect_ratio: '2:1', image_urls: ['a', 1, 2] })
    expect(fieldMessages(message)).toEqual({
      aspect_ratio: expect.stringMatching(/^This must be one of 1:1, .* not "2:1"/),
      quality: 'This must be one of basic, high, not "hi" (did you mean "high"?).',
      image_urls: 'Entry 2 must be of type string. Entry 3 must be of type string.',
    })
    expect(fieldMessages(refusalOf({}))).toEqual({ prompt: 'Enter a value.' })
    expect(fieldMessages('The input is not valid.')).toEqual({})
  })

  it('can be shown with any text', () => {
    fc.assert(fc.property(fc.string({ unit: anyCharacter }), (text) => void fieldMessages(text)))
  })

  test.each([
    [400, 'invalid_input', 'The run was not created.', 'input.quality is odd', false],
    [402, 'insufficient_balance', 'Not enough credits.', 'rushes admin credits add acme 100', false],
    [403, 'account_banned', 'This account is banned.', 'Ask the administrator', false],
    [403, 'foreign_origin', 'The service refused the address of this page.', 'Open the console at', false],
    [404, 'model_not_found', 'The service no longer has this model.', 'Choose another one', false],
    [413, 'payload_too_large', 'The images are too large.', 'Remove an image', false],
    [429, 'RATE_LIMITED', 'Too many runs at once.', 'Wait 3 seconds', false],
    [503, 'overloaded', 'The run may exist.', 'an error (503)', true],
    [503, 'not_ready', 'The run may exist.', 'you do not pay a second time', true],
    [401, 'not_signed_in', 'You were signed out.', 'Sign in', false],
    [0, 'network', 'The run may exist.', 'The connection ended', true],
    [409, 'session_changed', 'The run was not created.', 'input.quality is odd', false],
    [500, 'internal_error', 'The run may exist.', 'an error (500)', true],
    [502, 'bad_response', 'The run may exist.', 'an error (502)', true],
    [201, 'bad_response', 'The run may exist.', 'you do not pay a second time', true],
    [404, 'not_found', 'The run was not created.', 'input.quality is odd', false],
  ])('%i %s: %s', (status, code, title, text, mayExist) => {
    const error = { status, code, message: 'input.quality is odd.', retryAfterS: 3 }
    const failure = failureOf(error, { account: 'acme', canResend: true })
    expect(failure).toMatchObject({ title, mayExist })
    expect(failure.text).toContain(text)
  })

  it('promises no second charge only for content that was sent', () => {
    const lost = { status: 0, code: 'network', message: '' }
    expect(failureOf(lost, { account: 'acme', canResend: false }).text).toContain('creates another run')
    expect(unknownOutcome(false).text).toContain('Look for the first run in the list')
    expect(unknownOutcome(true).text).toContain('Create it again without changes')
  })
})
