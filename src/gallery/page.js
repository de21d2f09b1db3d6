/** The page: the filters and the grid. Only tiles near the visible part of the page are in the document. */

import { createViewer, element, tileOf } from './elements.js'
import { boxesBetween, CAPTION_HEIGHT, justify, MAX_RATIO, MIN_RATIO, neighbour } from './layout.js'

/** Distance from the window, above and below, up to which tiles are kept, in pixels. */
const MARGIN = 900
/** Smaller differences of a ratio do not cause a new layout. */
const RATIO_TOLERANCE = 0.02

const byId = (id) => document.getElementById(id)
const runs = JSON.parse(byId('runs').textContent)

const everyItem = runs.flatMap((run) =>
  run.files.map((file, at) => ({
    ...file,
    run,
    part: at + 1,
    parts: run.files.length,
    ratio: clampRatio(file.ratio),
    words: [run.prompt, run.model, run.id, ...run.labels, ...run.files.map((each) => each.name)]
      .join('\n')
      .toLowerCase(),
  })),
)

function clampRatio(ratio) {
  return ratio > 0 ? Math.max(MIN_RATIO, Math.min(MAX_RATIO, ratio)) : 1
}

const ELEMENTS = 'grid search kinds model label total empty'
const [grid, search, kinds, model, label, total, empty] = ELEMENTS.split(' ').map(byId)
const dialog = byId('viewer')

let items = everyItem
let layout = { boxes: [], height: 0 }
/** Index of the item that the tab key focuses. */
let focused = 0
/** List items in the document, by index. */
const shown = new Map()

const hasFocus = () => grid.contains(document.activeElement)

/** Adds the tiles near the window to the document, and removes all other tiles except a focused tile. */
function draw() {
  const top = grid.getBoundingClientRect().top
  const [first, end] = boxesBetween(layout.boxes, -top - MARGIN, -top + innerHeight + MARGIN)
  for (const [index, tile] of shown)
    if ((index < first || index >= end) && !tile.contains(document.activeElement)) {
      tile.remove()
      shown.delete(index)
    }
  for (let index = first; index < end; index++) if (!shown.has(index)) add(index)
}

function add(index) {
  const item = items[index]
  const tile = tileOf(item, {
    index,
    count: items.length,
    onOpen: viewer.open,
    onRatio: (ratio) => measured(item, ratio),
  })
  shown.set(index, tile)
  place(tile, layout.boxes[index])
  if (index === focused) tile.firstChild.tabIndex = 0
  // Insert in the order of the list, because screen readers use the order of the document.
  const after = Math.min(...[...shown.keys()].filter((each) => each > index))
  grid.insertBefore(tile, shown.get(after) ?? null)
}

function place(tile, { top, left, width, height }) {
  tile.style.transform = `translate(${left}px, ${top}px)`
  tile.style.width = `${width}px`
  tile.style.setProperty('--height', `${height}px`)
}

/** Lays out the grid again. Keeps the first visible picture at its position in the window. */
function arrange() {
  const offset = -grid.getBoundingClientRect().top
  const [anchor] = boxesBetween(layout.boxes, offset, offset)
  const before = offset > 0 ? layout.boxes[anchor] : undefined
  layout = justify(
    items.map((item) => item.ratio),
    grid.clientWidth,
  )
  grid.style.height = `${layout.height}px`
  for (const [index, tile] of shown) place(tile, layout.boxes[index])
  const after = layout.boxes[anchor]
  if (before !== undefined && after !== undefined)
    scrollBy({ top: after.top - before.top, behavior: 'instant' })
  draw()
}

let arranging = 0
function measured(item, ratio) {
  const clamped = clampRatio(ratio)
  if (Math.abs(clamped - item.ratio) / item.ratio < RATIO_TOLERANCE) return
  item.ratio = clamped
  cancelAnimationFrame(arranging)
  arranging = requestAnimationFrame(arrange)
}

function focusTile(index, options) {
  if (items[index] === undefined) return
  const old = shown.get(focused)?.firstChild
  if (old) old.tabIndex = -1
  focused = index
  const { top, height } = layout.boxes[index]
  const position = grid.getBoundingClientRect().top + top
  const header = byId('header').getBoundingClientRect().bottom
  if (position < header + 8) scrollBy({ top: position - header - 16, behavior: 'instant' })
  else if (position + height + CAPTION_HEIGHT > innerHeight)
    scrollBy({
      top: Math.min(position - header - 16, position + height + CAPTION_HEIGHT - innerHeight + 8),
      behavior: 'instant',
    })
  draw()
  const button = shown.get(index).firstChild
  button.tabIndex = 0
  if (options?.quiet !== true) button.focus({ preventScroll: true })
  draw()
}

const viewer = createViewer(dialog, {
  itemAt: (index) => items[index],
  count: () => items.length,
  onClose: focusTile,
})

const counted = (count, one, many) => `${count.toLocaleString()} ${count === 1 ? one : many}`

function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean)
  const kind = kinds.querySelector('[aria-pressed="true"]')?.value ?? ''
  items = everyItem.filter(
    (item) =>
      (kind === '' || item.media === kind) &&
      (model.value === '' || item.run.model === model.value) &&
      (label.value === '' || item.run.labels.includes(label.value)) &&
      words.every((word) => item.words.includes(word)),
  )
  for (const tile of shown.values()) tile.remove()
  shown.clear()
  focused = 0
  layout = { boxes: [], height: 0 }
  const all = counted(everyItem.length, 'result', 'results')
  total.textContent = items.length === everyItem.length ? all : `${items.length.toLocaleString()} of ${all}`
  empty.hidden = items.length > 0
  empty.textContent = everyItem.length === 0 ? 'No results yet.' : 'No result matches these filters.'
  arrange()
}

function filterFromTop() {
  filter()
  if (scrollY > grid.offsetTop) scrollTo({ top: 0, behavior: 'instant' })
}

const KIND_WORDS = { image: 'Images', video: 'Videos', audio: 'Audio', file: 'Files' }

function fillFilters() {
  const present = Object.keys(KIND_WORDS).filter((kind) => everyItem.some((item) => item.media === kind))
  const buttons = [['', 'All'], ...present.map((kind) => [kind, KIND_WORDS[kind]])].map(([value, text]) =>
    element('button', { type: 'button', value, 'aria-pressed': String(value === '') }, text),
  )
  for (const button of buttons)
    button.addEventListener('click', () => {
      for (const each of buttons) each.setAttribute('aria-pressed', String(each === button))
      filterFromTop()
    })
  kinds.replaceChildren(...buttons)
  kinds.hidden = present.length < 2
  const models = [...new Set(runs.map((run) => run.model))].sort()
  model.append(...models.map((name) => element('option', { value: name }, name)))
  model.hidden = models.length < 2
  const labels = [...new Set(runs.flatMap((run) => run.labels))].sort()
  label.append(...labels.map((text) => element('option', { value: text }, text)))
  label.hidden = labels.length === 0
  search.hidden = everyItem.length === 0
}

const KEYS = ['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'Home', 'End']

document.addEventListener('keydown', (event) => {
  const { key, target } = event
  if (dialog.open || event.ctrlKey || event.metaKey || event.altKey) return
  if (target === search) {
    if (key !== 'ArrowDown' && key !== 'Escape' && key !== 'Enter') return
    if (key === 'Escape' && search.value !== '') {
      search.value = ''
      filter()
    } else focusTile(0)
  } else if (target.matches('select, input')) return
  else if (key === '/') search.focus()
  else if (KEYS.includes(key) && hasFocus()) focusTile(neighbour(layout.boxes, focused, key))
  else if (KEYS.slice(0, 4).includes(key) && target === document.body)
    focusTile(
      boxesBetween(
        layout.boxes,
        byId('header').getBoundingClientRect().bottom - grid.getBoundingClientRect().top,
        Infinity,
      )[0],
    )
  else return
  event.preventDefault()
})

// Plays one video at a time. Uses the capture phase, because `play` does not bubble.
grid.addEventListener(
  'play',
  (event) => {
    for (const video of grid.querySelectorAll('video')) if (video !== event.target) video.pause()
  },
  true,
)
grid.addEventListener('focusin', (event) => {
  for (const [index, tile] of shown) {
    const isFocused = tile.contains(event.target)
    tile.firstChild.tabIndex = isFocused ? 0 : -1
    if (isFocused) focused = index
  }
})
search.addEventListener('input', filterFromTop)
for (const select of [model, label]) select.addEventListener('change', filterFromTop)

let isDrawing = false
function drawSoon() {
  if (isDrawing) return
  isDrawing = true
  requestAnimationFrame(() => {
    isDrawing = false
    draw()
  })
}
addEventListener('scroll', drawSoon, { passive: true })
addEventListener('resize', drawSoon)
let width = 0
new ResizeObserver(() => {
  if (grid.clientWidth === width) return
  width = grid.clientWidth
  arrange()
}).observe(grid)

fillFilters()
width = grid.clientWidth
filter()
