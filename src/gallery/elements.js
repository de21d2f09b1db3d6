/**
 * Creates the elements of the page: the tiles, and the large view of one result. Text from the data becomes a
 * text node or an attribute, never HTML.
 */

/** Creates an element with attributes. `children` are elements or texts. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(attributes))
    if (value !== undefined) made.setAttribute(key, value)
  made.append(...children)
  return made
}

const FULL_TIME = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })
const SHORT_TIME = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' })

/** Shortens text, because a browser takes seconds to lay out a text of 1 MB. */
const beginningOf = (text, characters) => (text.length <= characters ? text : `${text.slice(0, characters)}…`)

/** Formats a duration: `0:05`, `1:02:03`. */
function lengthText(seconds) {
  const whole = Math.round(seconds)
  const two = (value) => String(value).padStart(2, '0')
  const minutes = Math.floor(whole / 60)
  return minutes < 60
    ? `${minutes}:${two(whole % 60)}`
    : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(whole % 60)}`
}

/** Creates the placeholder of a file that the browser cannot show: its extension. */
const cardOf = ({ name, media }) =>
  element(
    'span',
    { class: 'card', 'aria-hidden': 'true' },
    (/\.([\w]{1,6})$/.exec(name)?.[1] ?? media).toUpperCase(),
  )

/**
 * Creates the picture or the player of an item. Calls `onRatio` with the real ratio of the file once it is
 * loaded. Tiles load images and the first frame of a video, but no other files.
 */
function mediaOf(item, { isLarge, onRatio = () => {} }) {
  const fail = (media) => () => {
    const note = element(
      'span',
      { class: 'missing' },
      'This file was moved or deleted, or the browser cannot show it.',
    )
    media.replaceWith(isLarge ? note : cardOf(item))
  }
  if (item.media === 'image') {
    const image = element('img', { alt: '', decoding: 'async', loading: isLarge ? 'eager' : 'lazy' })
    image.addEventListener('error', fail(image))
    image.addEventListener('load', () => onRatio(image.naturalWidth / image.naturalHeight))
    image.src = item.href
    return image
  }
  if (item.media === 'video') {
    const video = element('video', {
      preload: 'metadata',
      playsinline: '',
      ...(isLarge ? { controls: '' } : {}),
    })
    video.addEventListener('error', fail(video))
    video.addEventListener('loadedmetadata', () => onRatio(video.videoWidth / video.videoHeight))
    // Safari shows the first frame only if the URL contains a time.
    video.src = isLarge ? item.href : `${item.href}#t=0.001`
    return video
  }
  if (item.media === 'audio' && isLarge) {
    const audio = element('audio', { controls: '', preload: 'metadata' })
    audio.addEventListener('error', fail(audio))
    audio.src = item.href
    return audio
  }
  return cardOf(item)
}

const MEDIA_WORDS = { image: 'Image', video: 'Video', audio: 'Audio', file: 'File' }

const partText = ({ part, parts }) => (parts > 1 ? `${part} of ${parts}` : '')

/** Creates the tile of one result: a list item with one button. */
export function tileOf(item, { index, count, onOpen, onRatio }) {
  const { run, media } = item
  const length = element('span', { class: 'length', 'aria-hidden': 'true' })
  const shown = mediaOf(item, { isLarge: false, onRatio })
  shown.addEventListener('loadedmetadata', () => {
    if (Number.isFinite(shown.duration)) length.textContent = lengthText(shown.duration)
  })
  const date = SHORT_TIME.format(run.time)
  const button = element(
    'button',
    { type: 'button', class: 'tile', tabindex: '-1' },
    element(
      'span',
      { class: `frame ${media}` },
      shown,
      ...(media === 'video' ? [length] : []),
      ...(item.marks
        ? [element('span', { class: 'marked', title: `${item.marks} (not verified)` }, 'Marked')]
        : []),
    ),
    element('span', { class: 'unseen' }, `${MEDIA_WORDS[media]}: `),
    element(
      'span',
      { class: 'prompt', dir: 'auto' },
      beginningOf(run.prompt === '' ? item.name : run.prompt, 300),
    ),
    element('span', { class: 'facts' }, [partText(item), date, run.model].filter(Boolean).join(' · ')),
  )
  button.addEventListener('click', () => onOpen(index))
  button.addEventListener('keydown', (event) => {
    if (event.key !== ' ' || media !== 'video' || shown.paused === undefined) return
    event.preventDefault()
    if (event.repeat) return
    if (shown.paused) shown.play().catch(() => {})
    else shown.pause()
  })
  // Releasing the space key would press the button.
  button.addEventListener('keyup', (event) => {
    if (event.key === ' ' && media === 'video') event.preventDefault()
  })
  for (const name of ['play', 'pause', 'ended'])
    shown.addEventListener(name, () => button.classList.toggle('playing', !shown.paused && !shown.ended))
  return element('li', { 'aria-setsize': String(count), 'aria-posinset': String(index + 1) }, button)
}

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

/** Creates the large view, which shows one result with all its details. */
export function createViewer(dialog, { itemAt, count, onClose }) {
  const find = (name) => dialog.querySelector(`[data-part="${name}"]`)
  const [stage, prompt, facts, actions, said] = ['stage', 'prompt', 'facts', 'actions', 'said'].map(find)
  const [previous, next, close] = ['previous', 'next', 'close'].map(find)
  let current = 0

  function factRows({ run, name, href, isOpened, width, height, size, marks, part, parts }) {
    const pixels = width === undefined ? '' : `${width} × ${height}, `
    return [
      ['Model', run.model],
      ['Labels', run.labels.join(', ')],
      ['Run', run.id],
      ['Created', FULL_TIME.format(run.time)],
      [
        'Took',
        run.tookMs === undefined ? '' : `${(run.tookMs / 1000).toFixed(run.tookMs < 10_000 ? 1 : 0)} s`,
      ],
      ['Service', run.where],
      ['Output', parts > 1 ? `${part} of ${parts}` : ''],
      // No link to a file that could contain scripts, such as HTML or SVG.
      ['File', isOpened ? element('a', { href, target: '_blank', rel: 'noopener' }, name) : name],
      ['Size', `${pixels}${size}`],
      ['Marks', marks ? `${marks} (not verified)` : ''],
    ].filter(([, value]) => value !== '')
  }

  function showFacts(item) {
    facts.replaceChildren(
      ...factRows(item).flatMap(([name, value]) => [
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
  }

  function show(index) {
    current = index
    const item = itemAt(index)
    const { run } = item
    clearStage()
    const media = mediaOf(item, { isLarge: true })
    if (item.media === 'image') media.alt = beginningOf(run.prompt === '' ? item.name : run.prompt, 300)
    else if (item.media !== 'file')
      media.setAttribute('aria-label', beginningOf(run.prompt === '' ? item.name : run.prompt, 300))
    stage.append(media)
    media.addEventListener('loadedmetadata', () => {
      if (!(media.videoWidth > 0)) return
      item.width = media.videoWidth
      item.height = media.videoHeight
      if (current === index && dialog.open) showFacts(item)
    })
    if (item.media === 'video' && !matchMedia('(prefers-reduced-motion: reduce)').matches)
      media.play().catch(() => {})
    // Show only the beginning of a long prompt: the layout of 1 MB of text would take seconds. The copy
    // button copies the whole prompt.
    prompt.textContent = beginningOf(run.prompt, 5_000)
    prompt.hidden = run.prompt === ''
    showFacts(item)
    actions.replaceChildren(
      ...(run.again === undefined ? [] : [copyButton('Copy command', run.again)]),
      ...(run.id === '' ? [] : [copyButton('Copy run id', run.id)]),
      ...(run.prompt === '' ? [] : [copyButton('Copy prompt', run.prompt)]),
    )
    said.textContent = ''
    previous.disabled = index === 0
    next.disabled = index === count() - 1
    dialog.setAttribute('aria-label', `${MEDIA_WORDS[item.media]} ${index + 1} of ${count()}`)
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
    else if (key === ' ' && !isPlayer && !target.matches('button, a')) {
      const player = stage.querySelector('video, audio')
      if (player?.paused) player.play().catch(() => {})
      else player?.pause()
    } else return
    event.preventDefault()
  })

  return {
    open(index) {
      for (const media of document.querySelectorAll('video')) media.pause()
      show(index)
      dialog.showModal()
      dialog.focus()
    },
  }
}
