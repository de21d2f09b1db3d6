/** The page: the sections and the grid. Only tiles near the visible part of the page are in the document. */

import { element, tileOf } from './elements.js'
import { createFilters } from './filters.js'
import { groupItems, headingOf } from './groups.js'
import {
  boxesBetween,
  CAPTION_HEIGHT,
  HEADING_HEIGHT,
  layOutSections,
  MAX_RATIO,
  MIN_RATIO,
  neighbour,
} from './layout.js'
import { createViewer } from './viewer.js'

/** Distance from the window, above and below, up to which tiles are kept, in pixels. */
const MARGIN = 900
/** Smaller differences of a ratio do not cause a new layout. */
const RATIO_TOLERANCE = 0.02

const byId = (id) => document.getElementById(id)
const runs = JSON.parse(byId('runs').textContent)

const everyItem = runs.flatMap((run, order) =>
  run.files.map((file, at) => ({
    ...file,
    run,
    order,
    part: at + 1,
    parts: run.files.length,
    ratio: clampRatio(file.ratio),
    isClamped: clampRatio(file.ratio) !== file.ratio,
    words: [run.prompt, run.model, run.id, ...run.labels, ...run.files.map((each) => each.name)]
      .join('\n')
      .toLowerCase(),
  })),
)

function clampRatio(ratio) {
  return ratio > 0 ? Math.max(MIN_RATIO, Math.min(MAX_RATIO, ratio)) : 1
}

const [header, grid, total, empty, dialog] = ['header', 'grid', 'total', 'empty', 'viewer'].map(byId)
const filters = createFilters(everyItem, filterFromTop)

const NO_LAYOUT = { boxes: [], sections: [], height: 0 }
let sections = []
/** What the tiles show, in reading order. With groups, an item can be in several sections. */
let entries = []
let layout = NO_LAYOUT
/** Index of the entry that the tab key focuses. */
let focused = 0
/** List items in the document, by index. */
const shown = new Map()
/** Elements of the sections in the document, by index. */
const shownSections = new Map()

const hasFocus = () => grid.contains(document.activeElement)

/** Adds the tiles near the window to the document, and removes all other tiles except a focused tile. */
function draw() {
  const top = grid.getBoundingClientRect().top
  const [from, to] = [-top - MARGIN, -top + innerHeight + MARGIN]
  const [first, end] = boxesBetween(layout.boxes, from, to)
  for (const [index, tile] of shown)
    if ((index < first || index >= end) && !tile.contains(document.activeElement)) {
      tile.remove()
      shown.delete(index)
    }
  for (const [index, { section, list }] of shownSections)
    if (!isBetween(layout.sections[index], from, to) && list.childElementCount === 0) {
      section.remove()
      shownSections.delete(index)
    }
  for (let index = first; index < end; index++) if (!shown.has(index)) add(index)
}

const isBetween = ({ top, height }, from, to) => top + height >= from && top <= to

/** Returns the list of a section. Creates the section unless it is in the document. */
function listOf(index) {
  const { name, items } = sections[index]
  const present = shownSections.get(index)
  if (present !== undefined) return present.list
  const list = element('ul', { role: 'list' })
  const section = element('section', {}, list)
  if (name === undefined) list.setAttribute('aria-label', 'Results, newest first')
  else {
    const { title, details } = headingOf(name, items, filters.grouping())
    const heading = element('h2', { id: `section-${index}`, dir: 'auto' }, title)
    list.setAttribute('aria-labelledby', heading.id)
    section.prepend(element('div', { class: 'heading' }, heading, element('p', {}, details)))
  }
  shownSections.set(index, { section, list })
  placeSection(section, layout.sections[index])
  grid.insertBefore(section, following(shownSections, index)?.section ?? null)
  return list
}

/** Returns the value with the next higher index, because screen readers use the order of the document. */
const following = (byIndex, index) =>
  byIndex.get(Math.min(...[...byIndex.keys()].filter((each) => each > index)))

function placeSection(section, { top, height }) {
  section.style.top = `${top}px`
  section.style.height = `${height}px`
}

function add(index) {
  const entry = entries[index]
  const { section } = layout.boxes[index]
  const { first, end } = layout.sections[section]
  const tile = tileOf(entry, {
    index,
    position: index - first + 1,
    size: end - first,
    onOpen: viewer.open,
    onRatio: (ratio) => measured(entry.item, ratio),
  })
  const list = listOf(section)
  shown.set(index, tile)
  place(tile, index)
  if (index === focused) tile.firstChild.tabIndex = 0
  const after = following(shown, index)
  list.insertBefore(tile, after?.parentNode === list ? after : null)
}

function place(tile, index) {
  const { top, left, width, height, caption, section } = layout.boxes[index]
  tile.style.transform = `translate(${left}px, ${top - layout.sections[section].top}px)`
  tile.style.width = `${width}px`
  tile.style.setProperty('--height', `${height}px`)
  tile.style.setProperty('--caption', `${caption}px`)
  tile.classList.toggle('bare', caption === undefined)
  tile.classList.toggle('clamped', entries[index].item.isClamped)
}

/** Lays out the grid again. Keeps the first visible picture at its position in the window. */
function arrange() {
  const offset = -grid.getBoundingClientRect().top
  const [anchor] = boxesBetween(layout.boxes, offset, offset)
  const before = offset > 0 ? layout.boxes[anchor] : undefined
  layout = layOutSections(
    sections.map(({ units }) => units.map((unit) => unit.map((item) => item.ratio))),
    grid.clientWidth,
    { headingHeight: headingHeight() },
  )
  grid.style.height = `${layout.height}px`
  for (const [index, { section }] of shownSections) placeSection(section, layout.sections[index])
  for (const [index, tile] of shown) place(tile, index)
  const after = layout.boxes[anchor]
  if (before !== undefined && after !== undefined)
    scrollBy({ top: after.top - before.top, behavior: 'instant' })
  draw()
}

const headingHeight = () => (filters.grouping() === '' ? 0 : HEADING_HEIGHT)

/** Height of the header and the heading that stay at the top of the window. */
const coveredHeight = () => Math.max(0, header.getBoundingClientRect().bottom) + headingHeight()

let arranging = 0
function measured(item, ratio) {
  const clamped = clampRatio(ratio)
  if (Math.abs(clamped - item.ratio) / item.ratio < RATIO_TOLERANCE) return
  item.ratio = clamped
  item.isClamped = clamped !== ratio
  cancelAnimationFrame(arranging)
  arranging = requestAnimationFrame(arrange)
}

function focusTile(index, options) {
  if (entries[index] === undefined) return
  const old = shown.get(focused)?.firstChild
  if (old) old.tabIndex = -1
  focused = index
  const { top, height } = layout.boxes[index]
  const position = grid.getBoundingClientRect().top + top
  const covered = coveredHeight()
  if (position < covered + 8) scrollBy({ top: position - covered - 16, behavior: 'instant' })
  else if (position + height + CAPTION_HEIGHT > innerHeight)
    scrollBy({
      top: Math.min(position - covered - 16, position + height + CAPTION_HEIGHT - innerHeight + 8),
      behavior: 'instant',
    })
  draw()
  const button = shown.get(index).firstChild
  button.tabIndex = 0
  if (options?.quiet !== true) button.focus({ preventScroll: true })
  draw()
}

const viewer = createViewer(dialog, {
  entryAt: (index) => entries[index],
  count: () => entries.length,
  onClose: focusTile,
})

const counted = (count, one, many) => `${count.toLocaleString()} ${count === 1 ? one : many}`

function filter() {
  const items = filters.matching()
  sections = groupItems(items, filters.grouping(), filters.label())
  entries = sections.flatMap(({ units }) =>
    units.flatMap((variants) => variants.map((item, at) => ({ item, variants, at }))),
  )
  grid.replaceChildren()
  shown.clear()
  shownSections.clear()
  focused = 0
  layout = NO_LAYOUT
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

const KEYS = ['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'Home', 'End']

document.addEventListener('keydown', (event) => {
  const { key, target } = event
  const { search } = filters
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
    focusTile(boxesBetween(layout.boxes, coveredHeight() - grid.getBoundingClientRect().top, Infinity)[0])
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
  document.documentElement.style.setProperty('--header', `${header.offsetHeight}px`)
}).observe(header)
new ResizeObserver(() => {
  if (grid.clientWidth === width) return
  width = grid.clientWidth
  arrange()
}).observe(grid)

width = grid.clientWidth
filter()
