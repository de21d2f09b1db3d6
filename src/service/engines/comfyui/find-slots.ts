/**
 * Finds the slots of a workflow without a document: nodes by their titles, else from each sampler along its links to the
 * text encoders, the size and the schedule. Only nodes that reach an output count. A slot that is not unambiguous is a
 * problem, never a guess.
 */
import { type Slot, slotText, type Workflow } from './workflow.js'

export interface FoundSlots {
  readonly slots: Readonly<Record<string, readonly Slot[]>>
  readonly problems: readonly string[]
  /** Optional parameters with several nodes, which keep their values: `steps (nodes 3 KSampler, 11 KSampler)`. */
  readonly unclear: readonly string[]
}

const SAMPLER = /sampler|guider/i
/** Nodes whose results are kept, if nothing uses them. */
const OUTPUT = /save|preview|output|display|videocombine/i
/** Inputs that pass a condition on to the sampler. */
const CONDITION_INPUT = /^(positive|conditioning|text_embeds)/
const NEGATIVE_INPUT = /^(negative|conditioning)/
const LATENT_INPUT = /^(latent_image|samples|latent|image_embeds)$/
/** Inputs between a sampler and the node with its size, which may resize a picture before it is encoded. */
const SIZE_INPUT = /^(latent_image|samples|latent|pixels|images?|start_image)$/
const SCHEDULE_INPUT = /^sigmas$/
const TEXTS = ['text', 'prompt', 'text_g', 'text_l', 'clip_l', 't5xxl']
const POSITIVE = ['positive', 'positive_prompt']
const NEGATIVE = ['negative', 'negative_prompt']
/** The input of nodes that only hold a value. */
const VALUE_INPUTS = ['value', 'string', 'text']

/** By slot: the inputs of a node that may hold its value, and their type. */
const INPUTS: Readonly<Record<string, { readonly names: readonly string[]; readonly type: string }>> = {
  prompt: { names: [...TEXTS, ...POSITIVE], type: 'string' },
  negative_prompt: { names: [...NEGATIVE, ...TEXTS], type: 'string' },
  width: { names: ['width', 'empty_latent_width'], type: 'number' },
  height: { names: ['height', 'empty_latent_height'], type: 'number' },
  frames: { names: ['length', 'frames', 'num_frames'], type: 'number' },
  seed: { names: ['seed', 'noise_seed'], type: 'number' },
  steps: { names: ['steps'], type: 'number' },
  guidance: { names: ['guidance', 'cfg'], type: 'number' },
  references: { names: ['image'], type: 'string' },
}

export function findSlots(whole: Workflow): FoundSlots {
  const finder = new Finder(liveNodes(whole))
  const slots = finder.slots()
  const taken = (slots.prompt ?? []).map(slotText)
  // One text node may serve both encoders.
  const negative = slots.negative_prompt?.filter((slot) => !taken.includes(slotText(slot))) ?? []
  const found = Object.entries({ ...slots, negative_prompt: negative }).filter(([, each]) => each.length > 0)
  const { problems, unclear } = finder
  return { slots: Object.fromEntries(found.map(([name, each]) => [name, unique(each)])), problems, unclear }
}

const EACH_TITLE = ': each node that must get the prompt needs the title "prompt"'

class Finder {
  readonly problems: string[] = []
  readonly unclear: string[] = []
  readonly #workflow: Workflow
  readonly #ids: readonly string[]
  readonly #titled: Readonly<Record<string, readonly Slot[]>>
  readonly #samplers: readonly string[]
  /** Of each sampler, and of all. Without a sampler, each node with a text. */
  readonly #encodersBySampler: readonly (readonly string[])[]
  readonly #encoders: readonly string[]

  constructor(workflow: Workflow) {
    this.#workflow = workflow
    this.#ids = Object.keys(workflow)
    this.#titled = titledSlots(workflow, this.problems)
    this.#samplers = this.#ids.filter((id) => SAMPLER.test(this.#classOf(id)))
    this.#encodersBySampler = this.#samplers.map((id) =>
      this.#reached([id], CONDITION_INPUT, this.#isEncoder),
    )
    const all =
      this.#samplers.length === 0 ? this.#ids.filter(this.#isEncoder) : this.#encodersBySampler.flat()
    this.#encoders = [...new Set(all)]
  }

  slots(): Readonly<Record<string, readonly Slot[]>> {
    const samplers = this.#samplers
    // The condition of a sampler without a negative prompt may be made from the positive one.
    const negative = this.#reached(samplers, NEGATIVE_INPUT, this.#isEncoder, /^negative/).filter(
      (id) => !this.#encoders.includes(id),
    )
    const schedules = this.#reached(samplers, SCHEDULE_INPUT, (id) => this.#slotsOf([id], 'steps').length > 0)
    const guided = this.#reached(
      samplers,
      CONDITION_INPUT,
      (id) => this.#slotsOf([id], 'guidance', ['guidance']).length > 0,
    )
    const prompt = this.#prompt()
    const size = this.#isTitled('width', 'height') ? [] : this.#sizeNodes()
    const { prompt: _, ...titled } = this.#titled
    return {
      prompt,
      negative_prompt: this.#alike('negative_prompt', [
        ...this.#slotsOf(this.#encoders, 'negative_prompt', NEGATIVE),
        ...this.#slotsOf(negative, 'negative_prompt'),
      ]),
      width: this.#slotsOf(size, 'width'),
      height: this.#slotsOf(size, 'height'),
      frames: this.#slotsOf(size, 'frames'),
      seed: this.#slotsOf(this.#ids, 'seed'),
      steps: this.#alike('steps', this.#slotsOf([...samplers, ...schedules], 'steps')),
      guidance: this.#alike(
        'guidance',
        guided.length > 0
          ? this.#slotsOf(guided, 'guidance', ['guidance'])
          : this.#slotsOf(samplers, 'guidance', ['cfg']),
      ),
      references: this.#references(),
      ...titled,
    }
  }

  /** Each sampler must get the new prompt: a base model, and one that refines its picture. */
  #prompt(): readonly Slot[] {
    const own = this.#titled.prompt ?? []
    const all = this.#slotsOf(this.#encoders, 'prompt')
    if (own.length > 0) {
      const values = this.#valuesOf(own)
      const texts = own.map(slotText)
      const isSet = (slot: Slot) =>
        texts.includes(slotText(slot)) || values.has(valueAt(this.#workflow, slot))
      const isKept = this.#encodersBySampler.some(
        (nodes) => nodes.length > 0 && !this.#slotsOf(nodes, 'prompt').some(isSet),
      )
      return isKept
        ? this.#missing('the prompt', this.#encoders, [], EACH_TITLE)
        : [...own, ...all.filter(isSet)]
    }
    if (this.#encoders.length === 1 || this.#valuesOf(all).size === 1) return all
    if (all.length > 0) return this.#missing('the prompt', this.#encoders, [], EACH_TITLE)
    // An upscaler has neither a sampler nor a text.
    const others = this.#ids.filter(this.#isEncoder)
    return this.#samplers.length === 0 ? [] : this.#missing('the prompt', [], others)
  }

  #sizeNodes(): readonly string[] {
    const isSized = (id: string) => this.#pairOf(id).length === 2
    // A picture that a sampler has drawn is resized by a factor of its own.
    const isResult = (id: string) =>
      !/latent/i.test(this.#classOf(id)) &&
      this.#reached([id], /./, (each) => this.#samplers.includes(each)).length > 0
    const isSource = (id: string) => isSized(id) && !isResult(id)
    const found = this.#reached(this.#samplers, SIZE_INPUT, isSource, LATENT_INPUT)
    const sized = this.#ids.filter(isSized)
    const pairs = new Set(found.map((id) => this.#pairOf(id).join('x')))
    if (pairs.size === 1)
      return [...found, ...sized.filter((id) => pairs.has(this.#pairOf(id).join('x')) && !found.includes(id))]
    if (this.#samplers.length === 0) return sized.filter((id) => this.#encoders.includes(id))
    // Without a node that has a size, the picture has it.
    const isOfPicture = found.length === 0 && this.#images().length > 0
    return sized.length === 0 || isOfPicture ? [] : this.#missing('the size', found, sized)
  }

  #references(): readonly Slot[] {
    const images = this.#images()
    if (this.#isTitled('references') || images.length === 0) return []
    return this.#slotsOf(
      images.length === 1 ? images : this.#missing('the reference image', images, []),
      'references',
    )
  }

  readonly #isEncoder = (id: string): boolean => this.#slotsOf([id], 'prompt').length > 0
  readonly #classOf = (id: string): string => this.#workflow[id]?.class_type ?? ''

  #isTitled(...names: readonly string[]): boolean {
    return names.every((name) => Object.hasOwn(this.#titled, name))
  }

  #images(): readonly string[] {
    return this.#ids.filter((id) => /^LoadImage/.test(this.#classOf(id)))
  }

  /** The width and the height of a node. */
  #pairOf(id: string): readonly unknown[] {
    return ['width', 'height'].flatMap((name) => [...this.#valuesOf(this.#slotsOf([id], name))])
  }

  #slotsOf(nodes: readonly string[], name: string, inputs = INPUTS[name]?.names ?? []): readonly Slot[] {
    return nodes.flatMap((node) =>
      inputs.flatMap(
        (each) => literalSlot(this.#workflow, { node, keys: [each] }, INPUTS[name]?.type ?? '') ?? [],
      ),
    )
  }

  #valuesOf(slots: readonly Slot[]): ReadonlySet<unknown> {
    return new Set(slots.map((slot) => valueAt(this.#workflow, slot)))
  }

  #namesOf(nodes: readonly string[]): string {
    return nodes.map((id) => `${id} ${this.#classOf(id)}`).join(', ') || 'none'
  }

  #missing(what: string, found: readonly string[], others: readonly string[], advice = ''): readonly never[] {
    const candidates = `(candidates: ${this.#namesOf(found.length > 0 ? found : others)})`
    const number = found.length === 0 ? 'no node' : 'more than one node'
    this.problems.push(`has ${number} for ${what} ${candidates}${advice}`)
    return []
  }

  /** Several inputs with the same value get the same new one. */
  #alike(name: string, slots: readonly Slot[]): readonly Slot[] {
    if (this.#isTitled(name) || this.#valuesOf(slots).size <= 1) return slots
    this.unclear.push(`${name} (nodes ${this.#namesOf([...new Set(slots.map(({ node }) => node))])})`)
    return []
  }

  #reached(from: readonly string[], input: RegExp, isFound: (id: string) => boolean, first = input) {
    return reached(this.#workflow, { from, first, input }, isFound)
  }
}

/** The nodes that an output needs: others are left over. All nodes, where no output is known by its name. */
function liveNodes(workflow: Workflow): Workflow {
  const sourcesOf = (id: string) =>
    Object.values(workflow[id]?.inputs ?? {}).flatMap((value) => linkedNode(workflow, value) ?? [])
  const ids = Object.keys(workflow)
  const used = new Set(ids.flatMap(sourcesOf))
  const live = new Set(ids.filter((id) => !used.has(id) && OUTPUT.test(workflow[id]?.class_type ?? '')))
  // A set also visits what is added meanwhile.
  for (const id of live) for (const source of sourcesOf(id)) live.add(source)
  return live.size === 0
    ? workflow
    : Object.fromEntries(Object.entries(workflow).filter(([id]) => live.has(id)))
}

/** Titles that nodes have for a slot, in lower case and with spaces: `negative prompt`. */
const TITLES: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(Object.keys(INPUTS).map((name) => [name.replace('_', ' '), [name]])),
  size: ['width', 'height'],
  negative: ['negative_prompt'],
  reference: ['references'],
}

/** The slots of nodes that have the name of a slot as their title, such as `prompt` or `reference 2`. */
function titledSlots(workflow: Workflow, problems: string[]): Readonly<Record<string, readonly Slot[]>> {
  const slots: Record<string, Slot[]> = {}
  const nodes = Object.entries(workflow).flatMap(([node, { _meta: meta }]) => {
    const words = String(meta?.title ?? '')
      .trim()
      .toLowerCase()
      .replaceAll(/[\s_-]+/g, ' ')
    const [, title = '', number = '0'] = /^(.*?)(?: (\d+))?$/.exec(words) ?? []
    const names = Object.hasOwn(TITLES, title) ? (TITLES[title] ?? []) : []
    return names.map((name) => ({ node, name, number: Number(number) }))
  })
  for (const { node, name } of nodes.toSorted((one, other) => one.number - other.number)) {
    const { names = [], type = '' } = INPUTS[name] ?? {}
    const own = names.flatMap((each) => literalSlot(workflow, { node, keys: [each] }, type) ?? [])
    const held = VALUE_INPUTS.map((each): Slot => ({ node, keys: [each] })).filter(
      (slot) => typeof valueAt(workflow, slot) === type,
    )
    // A node with a text of its own for the negative prompt has others for the prompt.
    const inputs = name === 'negative_prompt' ? own.slice(0, 1) : own
    const found = inputs.length > 0 ? inputs : held.slice(0, 1)
    if (found.length > 0) slots[name] = [...(slots[name] ?? []), ...found]
    else if (type === 'string') {
      const { class_type: type, inputs = {} } = workflow[node] ?? {}
      const listed = Object.keys(inputs).join(', ') || 'none'
      problems.push(
        `has the title "${name}" on node ${node} ${type}, which has no such text (inputs: ${listed})`,
      )
    }
  }
  return slots
}

/** The value that the workflow itself has in a slot of one key. */
export const valueAt = (workflow: Workflow, { node, keys: [key = ''] }: Slot): unknown =>
  workflow[node]?.inputs[key]

/** Several inputs may get their value from the same node. */
const unique = (slots: readonly Slot[]): readonly Slot[] => [
  ...new Map(slots.map((slot) => [slotText(slot), slot])).values(),
]

/** Returns the frame rate that the workflow writes into its video, if it is one number. */
export function frameRateOf(workflow: Workflow): number | undefined {
  const rates = Object.keys(workflow).flatMap((node) =>
    ['fps', 'frame_rate'].flatMap((name) => {
      const slot = literalSlot(workflow, { node, keys: [name] }, 'number')
      return slot === undefined ? [] : [valueAt(workflow, slot)]
    }),
  )
  const [rate] = rates
  return typeof rate === 'number' && rates.every((each) => each === rate) ? rate : undefined
}

/**
 * Returns the first nodes that satisfy `isFound` on all paths against the links, starting with the inputs of `from`, whose
 * names match `first`.
 */
function reached(
  workflow: Workflow,
  {
    from,
    first,
    input,
  }: { readonly from: readonly string[]; readonly first: RegExp; readonly input: RegExp },
  isFound: (id: string) => boolean,
): readonly string[] {
  const found = new Set<string>()
  const seen = new Set(from)
  const waiting = [...from]
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop())
    for (const [name, value] of Object.entries(workflow[id]?.inputs ?? {})) {
      const pattern = from.includes(id) ? first : input
      const next = pattern.test(name) ? linkedNode(workflow, value) : undefined
      if (next === undefined) continue
      if (isFound(next)) found.add(next)
      else if (!seen.has(next)) {
        seen.add(next)
        waiting.push(next)
      }
    }
  return [...found]
}

/** Returns the node of a link (`["4", 0]`). */
const linkedNode = (workflow: Workflow, value: unknown): string | undefined =>
  Array.isArray(value) && typeof value[0] === 'string' && Object.hasOwn(workflow, value[0])
    ? value[0]
    : undefined

/** Returns the input if it holds a value of this type, or the input of the node that it is connected to. */
function literalSlot(workflow: Workflow, slot: Slot, type: string, depth = 0): Slot | undefined {
  const inputs = workflow[slot.node]?.inputs ?? {}
  const [name = ''] = slot.keys
  if (typeof inputs[name] === type) return slot
  const node = linkedNode(workflow, Object.hasOwn(inputs, name) ? inputs[name] : undefined)
  if (node === undefined || depth > 3) return undefined
  const { inputs: own = {} } = workflow[node] ?? {}
  const held = [...VALUE_INPUTS, name].find((each) => typeof own[each] === type)
  if (held !== undefined) return { node, keys: [held] }
  // The size of a picture is that of the node which has resized it.
  const picture = /^(width|height)$/.test(name) ? linkedNode(workflow, own.image ?? own.images) : undefined
  return picture === undefined
    ? undefined
    : literalSlot(workflow, { node: picture, keys: [name] }, type, depth + 1)
}
