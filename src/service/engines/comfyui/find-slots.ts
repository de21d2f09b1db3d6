/**
 * Finds the slots of a workflow without a document: nodes by their titles, else from each sampler along its links to the
 * text encoders, the size and the schedule. Only nodes that reach an output count. A slot that is not unambiguous is a
 * problem, never a guess.
 */
import { linkedNode, nodeText, type Slot, slotText, valueAt, type Workflow } from './workflow.js'

export interface FoundSlots {
  readonly slots: Readonly<Record<string, readonly Slot[]>>
  readonly problems: readonly string[]
}

const SAMPLER = /sampler|guider/i
/** Nodes whose results are kept, if nothing uses them. */
const OUTPUT = /save|preview|output|display|videocombine/i

/** Inputs that lead from a sampler to the nodes with its prompt, its size and its steps. */
const PROMPT_LINK = /^(positive|conditioning|text_embeds)/
const NEGATIVE_LINK = /^(negative|conditioning)/
const SIZE_LINK = /^(latent_image|samples|latent|image_embeds|pixels|images?|start_image)$/
const SCHEDULE_LINK = /^sigmas$/

const TEXTS = ['text', 'prompt', 'text_g', 'text_l', 'clip_l', 't5xxl']
const NEGATIVE_TEXTS = ['negative', 'negative_prompt']
/** The input of nodes that only hold a value. */
const VALUE_INPUTS = ['value', 'string', 'text']

/** By slot: the inputs of a node that may hold its value, and their type. */
const INPUTS: Readonly<Record<string, { readonly names: readonly string[]; readonly type: string }>> = {
  prompt: { names: [...TEXTS, 'positive', 'positive_prompt'], type: 'string' },
  negative_prompt: { names: [...NEGATIVE_TEXTS, ...TEXTS], type: 'string' },
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
  const taken = new Set(slots.prompt?.map(slotText))
  // One text node may serve both encoders.
  const negative = slots.negative_prompt?.filter((slot) => !taken.has(slotText(slot))) ?? []
  const found = Object.entries({ ...slots, negative_prompt: negative }).filter(([, each]) => each.length > 0)
  return {
    slots: Object.fromEntries(found.map(([name, each]) => [name, unique(each)])),
    problems: finder.problems,
  }
}

class Finder {
  readonly problems: string[] = []
  readonly #workflow: Workflow
  readonly #ids: readonly string[]
  /** The slots of nodes that have the name of a slot as their title, such as `prompt` or `reference 2`. */
  readonly #titled: Readonly<Record<string, readonly Slot[]>>
  readonly #samplers: readonly string[]
  /** The nodes with the text of each sampler, and of all. Without a sampler, each node with a text. */
  readonly #encodersBySampler: readonly (readonly string[])[]
  readonly #encoders: readonly string[]

  constructor(workflow: Workflow) {
    this.#workflow = workflow
    this.#ids = Object.keys(workflow)
    this.#titled = this.#titledSlots()
    this.#samplers = this.#ids.filter((id) => SAMPLER.test(this.#classOf(id)))
    this.#encodersBySampler = this.#samplers.map((id) => this.#linked([id], PROMPT_LINK, 'prompt'))
    this.#encoders =
      this.#samplers.length === 0
        ? this.#ids.filter((id) => this.#has(id, 'prompt'))
        : [...new Set(this.#encodersBySampler.flat())]
  }

  slots(): Readonly<Record<string, readonly Slot[]>> {
    const samplers = this.#samplers
    // The condition of a sampler without a negative prompt may be made from the positive one.
    const negative = this.#linked(samplers, NEGATIVE_LINK, 'prompt', /^negative/).filter(
      (id) => !this.#encoders.includes(id),
    )
    const scheduled = [...samplers, ...this.#linked(samplers, SCHEDULE_LINK, 'steps')]
    const guided = this.#slotsOf(this.#linked(samplers, PROMPT_LINK, 'guidance'), 'guidance')
    const sized = this.#titled.width && this.#titled.height ? [] : this.#sizeNodes()
    const { prompt: _, ...titled } = this.#titled
    return {
      prompt: this.#prompt(),
      negative_prompt: this.#alike([
        ...this.#slotsOf(this.#encoders, 'negative_prompt', NEGATIVE_TEXTS),
        ...this.#slotsOf(negative, 'negative_prompt'),
      ]),
      width: this.#slotsOf(sized, 'width'),
      height: this.#slotsOf(sized, 'height'),
      frames: this.#slotsOf(this.#linked(samplers, SIZE_LINK, 'frames'), 'frames'),
      seed: this.#slotsOf(this.#ids, 'seed'),
      steps: this.#alike(this.#slotsOf(scheduled, 'steps')),
      guidance: this.#alike(guided.length > 0 ? guided : this.#slotsOf(samplers, 'guidance')),
      references: this.#references(),
      ...titled,
    }
  }

  #titledSlots(): Readonly<Record<string, readonly Slot[]>> {
    const slots: Record<string, Slot[]> = {}
    const nodes = this.#ids.flatMap((node) => {
      const words = `${this.#workflow[node]?._meta?.title ?? ''}`.trim().toLowerCase()
      const [, title = '', number = '0'] = /^(.*?)(?: (\d+))?$/.exec(words.replaceAll(/[\s_-]+/g, ' ')) ?? []
      const names = Object.hasOwn(TITLES, title) ? (TITLES[title] ?? []) : []
      return names.map((name) => ({ node, name, number: Number(number) }))
    })
    for (const { node, name } of nodes.toSorted((one, other) => one.number - other.number)) {
      const own = this.#slotsOf([node], name)
      const found = own.length > 0 ? own : this.#slotsOf([node], name, VALUE_INPUTS).slice(0, 1)
      if (found.length > 0) slots[name] = [...(slots[name] ?? []), ...found]
      else if (INPUTS[name]?.type === 'string')
        this.problems.push(
          `has the title "${name}" on ${nodeText(this.#workflow, node)}, which has no such text`,
        )
    }
    return slots
  }

  /** Each sampler must get the new prompt: a base model, and one that refines its picture. */
  #prompt(): readonly Slot[] {
    const advice = ': each node that must get the prompt needs the title "prompt"'
    const all = this.#slotsOf(this.#encoders, 'prompt')
    const { prompt: titled } = this.#titled
    if (titled !== undefined) {
      const texts = this.#valuesOf(titled)
      const isSet = (slot: Slot) => texts.has(valueAt(this.#workflow, slot))
      const isComplete = this.#encodersBySampler.every(
        (nodes) => nodes.length === 0 || this.#slotsOf(nodes, 'prompt').some(isSet),
      )
      return isComplete
        ? [...titled, ...all.filter(isSet)]
        : this.#missing('the prompt', this.#encoders, [], advice)
    }
    if (this.#encoders.length === 1 || this.#valuesOf(all).size === 1) return all
    if (all.length > 0) return this.#missing('the prompt', this.#encoders, [], advice)
    // An upscaler has neither a sampler nor a text.
    const others = this.#ids.filter((id) => this.#has(id, 'prompt'))
    return this.#samplers.length === 0 ? [] : this.#missing('the prompt', [], others)
  }

  /** The nodes of one size, which the samplers are linked to, and all others of the same size. */
  #sizeNodes(): readonly string[] {
    const sized = this.#ids.filter((id) => this.#has(id, 'width') && this.#has(id, 'height'))
    if (this.#samplers.length === 0) return sized.filter((id) => this.#encoders.includes(id))
    const found = this.#linked(this.#samplers, SIZE_LINK, 'width').filter((id) => sized.includes(id))
    const sizeOf = (id: string) =>
      ['width', 'height'].map((name) => [...this.#valuesOf(this.#slotsOf([id], name))]).join('x')
    const sizes = new Set(found.map(sizeOf))
    if (sizes.size === 1) return [...found, ...sized.filter((id) => sizes.has(sizeOf(id)))]
    // Without a node that has a size, the picture has it.
    const isOfPicture = found.length === 0 && this.#images().length > 0
    return sized.length === 0 || isOfPicture ? [] : this.#missing('the size', found, sized)
  }

  #references(): readonly Slot[] {
    const images = this.#images()
    if (this.#titled.references || images.length === 0) return []
    return images.length === 1
      ? this.#slotsOf(images, 'references')
      : this.#missing('the reference image', images, [])
  }

  readonly #classOf = (id: string): string => this.#workflow[id]?.class_type ?? ''

  #images(): readonly string[] {
    return this.#ids.filter((id) => /^LoadImage/.test(this.#classOf(id)))
  }

  #has(id: string, name: string): boolean {
    return this.#slotsOf([id], name).length > 0
  }

  #slotsOf(nodes: readonly string[], name: string, inputs = INPUTS[name]?.names ?? []): readonly Slot[] {
    return nodes.flatMap((node) =>
      inputs.flatMap(
        (each) => literalSlot(this.#workflow, { node, input: each }, INPUTS[name]?.type ?? '') ?? [],
      ),
    )
  }

  #valuesOf(slots: readonly Slot[]): ReadonlySet<unknown> {
    return new Set(slots.map((slot) => valueAt(this.#workflow, slot)))
  }

  /** Several inputs with the same value get the same new one. With different values, they keep them. */
  #alike(slots: readonly Slot[]): readonly Slot[] {
    return this.#valuesOf(slots).size <= 1 ? slots : []
  }

  #namesOf(nodes: readonly string[]): string {
    return nodes.map((id) => `${id} ${this.#classOf(id)}`).join(', ') || 'none'
  }

  #missing(what: string, found: readonly string[], others: readonly string[], advice = ''): readonly never[] {
    const candidates = `(candidates: ${this.#namesOf(found.length > 0 ? found : others)})`
    this.problems.push(
      `has ${found.length === 0 ? 'no' : 'more than one'} node for ${what} ${candidates}${advice}`,
    )
    return []
  }

  /**
   * Returns the nodes with the slot `name` that are linked to these: a search passes on through the inputs that match `link`,
   * and ends at each node that it finds. From the first nodes, it passes through those that match `first`.
   */
  #linked(from: readonly string[], link: RegExp, name: string, first = link): readonly string[] {
    const found = new Set<string>()
    const passed = new Set(from)
    // The iteration of a set includes what is added during it.
    for (const id of passed)
      for (const [input, value] of Object.entries(this.#workflow[id]?.inputs ?? {})) {
        const next = linkedNode(this.#workflow, value)
        if (next === undefined || !(from.includes(id) ? first : link).test(input)) continue
        if (this.#has(next, name)) found.add(next)
        else passed.add(next)
      }
    return [...found]
  }
}

/** The nodes that an output needs: others are left over. All nodes, where no output is known by its name. */
function liveNodes(workflow: Workflow): Workflow {
  const sourcesOf = (id: string) =>
    Object.values(workflow[id]?.inputs ?? {}).flatMap((value) => linkedNode(workflow, value) ?? [])
  const ids = Object.keys(workflow)
  const used = new Set(ids.flatMap(sourcesOf))
  const live = new Set(ids.filter((id) => !used.has(id) && OUTPUT.test(workflow[id]?.class_type ?? '')))
  // The iteration of a set includes what is added during it.
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

/** Several inputs may get their value from the same node. */
const unique = (slots: readonly Slot[]): readonly Slot[] => [
  ...new Map(slots.map((slot) => [slotText(slot), slot])).values(),
]

/** Returns the frame rate that the workflow writes into its video, if it is one number. */
export function frameRateOf(workflow: Workflow): number | undefined {
  const rates = Object.keys(workflow).flatMap((node) =>
    ['fps', 'frame_rate'].flatMap((name) => {
      const slot = literalSlot(workflow, { node, input: name }, 'number')
      return slot === undefined ? [] : [valueAt(workflow, slot)]
    }),
  )
  const [rate, ...others] = new Set(rates)
  return others.length === 0 && typeof rate === 'number' && rate > 0 ? rate : undefined
}

/** Returns the input if it holds a value of this type, or the input of the node that it is connected to. */
function literalSlot(workflow: Workflow, slot: Slot, type: string): Slot | undefined {
  const value = valueAt(workflow, slot)
  const node = linkedNode(workflow, value)
  if (node === undefined) return typeof value === type ? slot : undefined
  const linked = [...VALUE_INPUTS, slot.input].map((each): Slot => ({ node, input: each }))
  return linked.find((each) => typeof valueAt(workflow, each) === type)
}
