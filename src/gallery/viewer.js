/** The large view: one result with all its details, or up to four variants side by side. */

import { amountText, beginningOf, element, FULL_TIME, MEDIA_WORDS, mediaOf, titleOf } from './elements.js'
import { columnsFor } from './layout.js'

/** Maximum number of variants that are compared. */
const MAX_COMPARED = 4

/**
 * Copies text. Falls back to `execCommand`, because some browsers have no `navigator.clipboard` for pages on
 * disk.
 */
async function copyText(text, beside) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const field = element('textarea', {
      class: 'hidden',
      readonly: '',
      'aria-hidden': 'true',
      tabindex: '-1',
    })
    field.value = text
    // Insert the field into the dialog, because nothing outside an open dialog can be selected.
    beside.after(field)
    field.select()
    const isCopied = document.execCommand('copy')
    field.remove()
    beside.focus()
    return isCopied
  }
}

/** Describes each compared variant by the parameters that not all variants have, else by the name of its file. */
export function differencesOf(compared, variants) {
  const isShared = (parameter) => variants.every(({ run }) => run.parameters.includes(parameter))
  return compared.map(({ run, name }) => {
    const own = run.parameters.filter((parameter) => !isShared(parameter))
    return own.length > 0 ? own.join(' · ') : name.split('/').at(-1)
  })
}

/** Creates the large view. `entryAt` returns an item, its variants, and its place among them. */
export function createViewer(dialog, { entryAt, count, onClose }) {
  const find = (name) => dialog.querySelector(`[data-part="${name}"]`)
  const [stage, prompt, facts, actions, said] = ['stage', 'prompt', 'facts', 'actions', 'said'].map(find)
  const [previous, next, compare, close] = ['previous', 'next', 'compare', 'close'].map(find)
  let current = 0
  let isComparing = false
  /** Index of the first compared variant in the stage; undefined if the stage shows one result. */
  let comparedFrom

  function factRows({ item, variants, at }) {
    const { run, name, href, isOpened, width, height, size, marks, part, parts } = item
    const pixels = width === undefined ? '' : `${width} × ${height}, `
    return [
      ['Model', run.model],
      ['Parameters', run.parameters.join(', ')],
      ['Variant', variants.length > 1 ? `${at + 1} of ${variants.length}` : ''],
      ['Labels', run.labels.join(', ')],
      ['Run', run.id],
      ['Created', FULL_TIME.format(run.time)],
      [
        'Took',
        run.tookMs === undefined ? '' : `${(run.tookMs / 1000).toFixed(run.tookMs < 10_000 ? 1 : 0)} s`,
      ],
      ['Estimate', run.estimate ? amountText(run.estimate.millionths, run.estimate.currency) : ''],
      ['Service', run.where],
      ['Output', parts > 1 ? `${part} of ${parts}` : ''],
      // No link to a file that could contain scripts, such as HTML or SVG.
      ['File', isOpened ? element('a', { href, target: '_blank', rel: 'noopener' }, name) : name],
      ['Size', `${pixels}${size}`],
      ['Marks', marks ? `${marks} (not verified)` : ''],
    ].filter(([, value]) => value !== '')
  }

  function showFacts(entry) {
    facts.replaceChildren(
      ...factRows(entry).flatMap(([name, value]) => [
        element('dt', {}, name),
        element('dd', {}, element('bdi', {}, value)),
      ]),
    )
  }

  function copyButton(text, copied) {
    const button = element('button', { type: 'button' }, text)
    button.addEventListener('click', async () => {
      said.textContent = ''
      const isCopied = await copyText(copied, button)
      said.textContent = isCopied ? 'Copied' : 'The browser did not allow copying'
      button.classList.toggle('done', isCopied)
      setTimeout(() => button.classList.remove('done'), 1500)
    })
    return button
  }

  /** Pause first: a removed player would continue to play. */
  function clearStage() {
    for (const media of stage.querySelectorAll('video, audio')) media.pause()
    stage.replaceChildren()
    stage.classList.remove('compared')
    comparedFrom = undefined
  }

  const playWhereAllowed = (media) => {
    if (!matchMedia('(prefers-reduced-motion: reduce)').matches) media.play().catch(() => {})
  }

  function showOne(index, entry) {
    const { item } = entry
    clearStage()
    const media = mediaOf(item, { isLarge: true })
    if (item.media === 'image') media.alt = titleOf(item)
    else if (item.media !== 'file') media.setAttribute('aria-label', titleOf(item))
    stage.append(media)
    media.addEventListener('loadedmetadata', () => {
      if (!(media.videoWidth > 0)) return
      item.width = media.videoWidth
      item.height = media.videoHeight
      if (current === index && dialog.open) showFacts(entry)
    })
    if (item.media === 'video') playWhereAllowed(media)
  }

  /** Shows the variants near this one side by side, and marks this one. Keeps the pictures that are already shown. */
  function showCompared(index, { variants, at }) {
    const start = Math.max(0, Math.min(at - (at % MAX_COMPARED), variants.length - MAX_COMPARED))
    const compared = variants.slice(start, start + MAX_COMPARED)
    const from = index - at + start
    if (comparedFrom !== from) {
      clearStage()
      comparedFrom = from
      stage.classList.add('compared')
      const differences = differencesOf(compared, variants)
      stage.append(
        ...compared.map((item, place) => {
          const media = mediaOf(item, { isLarge: false })
          const button = element(
            'button',
            { type: 'button', class: 'choice', tabindex: '-1' },
            element('span', { class: 'shown' }, media),
            element('span', { class: 'unseen' }, `${MEDIA_WORDS[item.media]} ${start + place + 1}: `),
            element('span', { class: 'difference' }, beginningOf(differences[place], 120)),
          )
          button.addEventListener('click', () => {
            if (current === from + place) isComparing = false
            show(from + place)
            dialog.focus()
          })
          if (item.media === 'video') {
            media.muted = true
            playWhereAllowed(media)
          }
          return button
        }),
      )
      arrangeCompared()
    }
    for (const [place, button] of [...stage.children].entries())
      button.setAttribute('aria-current', String(from + place === index))
  }

  function arrangeCompared() {
    if (comparedFrom === undefined) return
    const ratios = [...stage.children].map((_, place) => entryAt(comparedFrom + place).item.ratio)
    for (const [place, button] of [...stage.children].entries())
      button.style.setProperty('--ratio', String(ratios[place]))
    const columns = columnsFor(ratios, stage.clientWidth, stage.clientHeight)
    stage.style.setProperty('--columns', String(columns))
  }

  function show(index) {
    current = index
    const entry = entryAt(index)
    const { run, media } = entry.item
    const hasVariants = entry.variants.length > 1
    compare.hidden = !hasVariants
    compare.setAttribute('aria-pressed', String(isComparing))
    if (isComparing && hasVariants) showCompared(index, entry)
    else showOne(index, entry)
    // Show only the beginning of a long prompt: the layout of 1 MB of text would take seconds. The copy
    // button copies the whole prompt.
    prompt.textContent = beginningOf(run.prompt, 5_000)
    prompt.hidden = run.prompt === ''
    showFacts(entry)
    actions.replaceChildren(
      ...(run.again === undefined ? [] : [copyButton('Copy command', run.again)]),
      ...(run.id === '' ? [] : [copyButton('Copy run id', run.id)]),
      ...(run.prompt === '' ? [] : [copyButton('Copy prompt', run.prompt)]),
    )
    said.textContent = ''
    previous.disabled = index === 0
    next.disabled = index === count() - 1
    dialog.setAttribute('aria-label', `${MEDIA_WORDS[media]} ${index + 1} of ${count()}`)
    dialog.querySelector('.about').scrollTop = 0
  }

  function move(step) {
    const index = current + step
    if (index < 0 || index >= count()) return
    const focusedBefore = document.activeElement
    show(index)
    // A disabled or replaced button loses the focus, and the dialog then gets no key events.
    if (!dialog.contains(document.activeElement) || focusedBefore?.disabled || !focusedBefore?.isConnected)
      dialog.focus()
  }

  function toggleCompare() {
    if (entryAt(current).variants.length < 2) return
    isComparing = !isComparing
    show(current)
  }

  compare.addEventListener('click', toggleCompare)
  addEventListener('resize', arrangeCompared)
  previous.addEventListener('click', () => move(-1))
  next.addEventListener('click', () => move(1))
  close.addEventListener('click', () => dialog.close())
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog || event.target === stage) dialog.close()
  })
  dialog.addEventListener('close', () => {
    clearStage()
    onClose(current)
  })
  dialog.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const { target, key } = event
    const isPlayer = target.matches('video, audio')
    if (key === 'ArrowLeft' && !isPlayer) move(-1)
    else if (key === 'ArrowRight' && !isPlayer) move(1)
    else if (key === 'c') toggleCompare()
    else if (key === ' ' && !isPlayer && !target.matches('button, a')) {
      const players = [...stage.querySelectorAll('video, audio')]
      const isPaused = players[0]?.paused
      for (const player of players)
        if (isPaused) player.play().catch(() => {})
        else player.pause()
    } else return
    event.preventDefault()
  })

  return {
    open(index) {
      for (const media of document.querySelectorAll('video')) media.pause()
      isComparing = false
      dialog.showModal()
      show(index)
      dialog.focus()
    },
  }
}
