/**
 * The page: filters, the grid, and the large view. CSS lays out the grid: each tile grows by its ratio, so that a row
 * fills its width. The browser draws only what is near the window.
 */
const KIND_WORDS = { image: 'Image', video: 'Video', audio: 'Audio', file: 'File' }
const TIME = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })
/** A picture that is much wider or higher is shown with a border, so that rows keep their height. */
const [MIN_RATIO, MAX_RATIO] = [0.4, 3]
/** Characters of a prompt that are shown: the layout of 1 MB of text would take seconds. */
const MAX_PROMPT = 5_000

const byId = (id) => document.getElementById(id)
const [total, search, grid, empty, dialog, stage] = 'total search grid empty viewer stage'
  .split(' ')
  .map(byId)
const [prompt, actions, said, facts] = 'prompt actions said facts'.split(' ').map(byId)
const selects = ['kind', 'model', 'label', 'manifest'].map(byId)

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  made.append(...children)
  return made
}

/** Cuts a text after at most `max` UTF-16 units, and not within a character. */
const beginningOf = (text, max) =>
  text.length <= max ? text : `${text.slice(0, max).replace(/[\ud800-\udbff]$/, '')}…`

const titleOf = ({ run, name }) => beginningOf(run.prompt || name, 300)

const items = JSON.parse(byId('runs').textContent).flatMap((run, order) =>
  run.files.map((file, at) => ({
    ...file,
    run,
    order,
    output: at + 1,
    values: { kind: [file.media], model: [run.model], label: run.labels, manifest: [run.manifest ?? ''] },
    words: [run.prompt, run.row, run.model, run.id, ...run.labels, file.name].join('\n').toLowerCase(),
  })),
)

/** Creates the picture or the player of an item. `isLarge`: with controls, and with a link to a file that cannot be shown. */
function mediaOf(item, isLarge) {
  const { media, href, name, isOpened } = item
  const card = () => {
    const words = (/\.(\w{1,6})$/.exec(name)?.[1] ?? media).toUpperCase()
    return element('span', { class: 'card', 'aria-hidden': 'true' }, words)
  }
  const missing = () => {
    const words = 'This file was moved or deleted, or the browser cannot show it.'
    const link = isOpened ? [' ', element('a', { href, download: '' }, 'Download it')] : []
    return element('span', { class: 'missing' }, words, ...link)
  }
  if (media === 'file' || (media === 'audio' && !isLarge)) return card()
  const controls = isLarge ? { controls: '' } : {}
  const shown =
    media === 'image'
      ? element('img', {
          alt: isLarge ? titleOf(item) : '',
          decoding: 'async',
          loading: isLarge ? 'eager' : 'lazy',
        })
      : element(media, { preload: 'metadata', playsinline: '', 'aria-label': titleOf(item), ...controls })
  shown.addEventListener('error', () => shown.replaceWith(isLarge ? missing() : card()))
  // Safari shows the first frame only if the URL contains a time.
  const load = () => {
    shown.src = media === 'video' && !isLarge ? `${href}#t=0.001` : href
  }
  if (media === 'video' && !isLarge) whenNear(shown, load)
  else load()
  return shown
}

const loads = new WeakMap()
/** Films have no lazy loading of their own. */
const observer = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries)
      if (isIntersecting) {
        observer.unobserve(target)
        loads.get(target)()
      }
  },
  { rootMargin: '600px' },
)
function whenNear(shown, load) {
  loads.set(shown, load)
  observer.observe(shown)
}

/** Sets the ratio of a tile: an estimate at first, and that of the file once it is loaded. */
function setRatio(button, width, height) {
  const ratio = width / height
  if (!(ratio > 0)) return
  button.style.setProperty('--ratio', String(Math.max(MIN_RATIO, Math.min(MAX_RATIO, ratio))))
  button.classList.toggle('clamped', ratio < MIN_RATIO || ratio > MAX_RATIO)
  arrange(button.closest('li'))
}

/** A list item is as wide as the sum of its pictures, so that all pictures of a row have one height. */
function arrange(list) {
  const tiles = list?.querySelectorAll('.tile:not([hidden])') ?? []
  const sum = [...tiles].reduce((total, { style }) => total + Number(style.getPropertyValue('--ratio')), 0)
  list?.style.setProperty('--sum', String(sum))
  list?.style.setProperty('--count', String(tiles.length))
}

function tileOf(item, variants) {
  const shown = mediaOf(item, false)
  const at = variants.length > 1 ? ` ${variants.indexOf(item) + 1} of ${variants.length}` : ''
  const button = element(
    'button',
    {
      type: 'button',
      class: `tile ${item.media}`,
      'aria-label': `${KIND_WORDS[item.media]}${at}: ${titleOf(item)}`,
    },
    shown,
  )
  setRatio(button, item.ratio, 1)
  shown.addEventListener('load', () => setRatio(button, shown.naturalWidth, shown.naturalHeight))
  // WebKit knows the size of a film only at `resize`.
  for (const event of ['loadedmetadata', 'resize'])
    shown.addEventListener(event, () => setRatio(button, shown.videoWidth, shown.videoHeight))
  button.addEventListener('click', () => open(item))
  return button
}

/**
 * Collects variants: the runs of one row of a manifest, else the runs of one model and prompt, and the outputs of one
 * run. A unit is at the place of its newest variant, and has them in the order of creation.
 */
function unitsOf(all) {
  const byKey = new Map()
  for (const item of all) {
    const { row, manifest, model, prompt: words } = item.run
    const key = row !== undefined ? `${manifest}\n${row}` : words === '' ? item.order : `${model}\n${words}`
    byKey.set(key, [...(byKey.get(key) ?? []), item])
  }
  return [...byKey.values()].map((variants) => {
    variants.sort((a, b) => b.order - a.order || a.output - b.output)
    const [{ run }] = variants
    const tiles = variants.map((item) => tileOf(item, variants))
    const list = element('li', {}, element('div', { class: 'variants' }, ...tiles), captionOf(run, variants))
    return { variants, tiles, list }
  })
}

const captionOf = (run, variants) =>
  element(
    'div',
    { class: 'caption' },
    ...(run.row === undefined ? [] : [element('p', { class: 'name', dir: 'auto' }, run.row)]),
    element('p', { class: 'prompt', dir: 'auto' }, titleOf(variants[0])),
    element('p', { class: 'facts' }, `${TIME.format(run.time)} · ${run.model}`),
  )

const units = unitsOf(items)
/** Items that the filters keep, in the order of the grid. */
let shownItems = []

/** Fills a filter with the values of the items. Hides one that cannot change anything. */
function fill(select) {
  const values = [...new Set(items.flatMap((item) => item.values[select.id]))]
    .filter((value) => value !== '')
    .sort()
  // A label may be `image`, or `constructor`.
  const words = (value) => (select.id === 'kind' ? KIND_WORDS[value] : value)
  select.append(...values.map((value) => element('option', { value }, words(value))))
  select.hidden = values.length < (select.id === 'label' || select.id === 'manifest' ? 1 : 2)
}

function filter() {
  const words = search.value.toLowerCase().split(/\s+/)
  const isKept = (item) =>
    words.every((word) => item.words.includes(word)) &&
    selects.every(({ id, value }) => value === '' || item.values[id].includes(value))
  shownItems = []
  for (const { variants, tiles, list } of units) {
    const kept = variants.filter(isKept)
    shownItems.push(...kept)
    list.hidden = kept.length === 0
    for (const [at, tile] of tiles.entries()) tile.hidden = !kept.includes(variants[at])
    arrange(list)
  }
  const count = shownItems.length
  total.textContent = count === 1 ? '1 result' : `${count.toLocaleString()} results`
  empty.hidden = count > 0
  empty.textContent = items.length === 0 ? 'No results yet.' : 'No results match.'
}

let current

const variantsOf = (item) =>
  units.find(({ variants }) => variants.includes(item)).variants.filter((each) => shownItems.includes(each))

function show(item) {
  current = item
  const { run, media } = item
  const variants = variantsOf(item)
  // Pause first: a removed player would continue to play.
  for (const player of stage.querySelectorAll('video, audio')) player.pause()
  stage.replaceChildren(mediaOf(item, true))
  if (media === 'video' && !matchMedia('(prefers-reduced-motion: reduce)').matches)
    stage.firstChild.play().catch(() => {})
  const at = shownItems.indexOf(item)
  byId('previous').disabled = at === 0
  byId('next').disabled = at === shownItems.length - 1
  dialog.setAttribute('aria-label', `${KIND_WORDS[media]} ${at + 1} of ${shownItems.length}`)
  prompt.textContent = beginningOf(run.prompt, MAX_PROMPT)
  said.textContent = ''
  actions.replaceChildren(
    ...[
      ['Copy run id', run.id],
      ['Copy prompt', run.prompt],
    ].flatMap(([words, text]) => (text ? [copyButton(words, text)] : [])),
  )
  facts.replaceChildren(
    ...factsOf(item, variants).flatMap(([name, value]) =>
      value === undefined || value === ''
        ? []
        : [element('dt', {}, name), element('dd', {}, element('bdi', {}, value))],
    ),
  )
}

const factsOf = (item, variants) => {
  const { run, name, href, isOpened, output } = item
  return [
    ['Name', run.row],
    ['Manifest', run.manifest],
    ['Model', run.model],
    ['Variant', variants.length > 1 ? `${variants.indexOf(item) + 1} of ${variants.length}` : ''],
    ['Labels', run.labels.join(', ')],
    ['Run', run.id],
    ['Created', TIME.format(run.time)],
    ['Output', run.files.length > 1 ? `${output} of ${run.files.length}` : ''],
    // No link to a file that could contain scripts, such as HTML or SVG.
    ['File', isOpened ? element('a', { href, target: '_blank', rel: 'noopener' }, name) : name],
  ]
}

function copyButton(words, text) {
  const button = element('button', { type: 'button' }, words)
  button.addEventListener('click', async () => {
    said.textContent = ''
    said.textContent = (await copyText(text, button)) ? 'Copied' : 'The browser did not allow copying'
  })
  return button
}

/** Some browsers have no `navigator.clipboard` for pages on disk. */
async function copyText(text, beside) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    // In the dialog, because nothing outside an open dialog can be selected.
    const field = element('textarea', {
      class: 'unseen',
      readonly: '',
      'aria-hidden': 'true',
      tabindex: '-1',
    })
    field.value = text
    beside.after(field)
    field.select()
    const isCopied = document.execCommand('copy')
    field.remove()
    beside.focus()
    return isCopied
  }
}

function open(item) {
  dialog.showModal()
  show(item)
  dialog.focus()
}

function move(step) {
  const item = shownItems[shownItems.indexOf(current) + step]
  if (item === undefined) return
  show(item)
  // A disabled button loses the focus, and the dialog then gets no keys.
  if (!dialog.contains(document.activeElement) || document.activeElement.disabled) dialog.focus()
}

for (const select of selects) {
  fill(select)
  select.addEventListener('change', filter)
}
search.hidden = items.length === 0
search.addEventListener('input', filter)
byId('previous').addEventListener('click', () => move(-1))
byId('next').addEventListener('click', () => move(1))
byId('close').addEventListener('click', () => dialog.close())
dialog.addEventListener('click', ({ target }) => {
  if (target === dialog || target === stage) dialog.close()
})
dialog.addEventListener('close', () => {
  stage.replaceChildren()
  const { tiles, variants } = units.find((unit) => unit.variants.includes(current))
  tiles[variants.indexOf(current)].focus()
})
dialog.addEventListener('keydown', ({ key, target, ctrlKey, metaKey, altKey }) => {
  if (ctrlKey || metaKey || altKey || target.matches('video, audio')) return
  if (key === 'ArrowLeft') move(-1)
  if (key === 'ArrowRight') move(1)
})
grid.append(...units.map(({ list }) => list))
filter()
