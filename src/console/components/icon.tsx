/** Line icons on a grid of 24, drawn with the colour of the text. Decoration: the text beside them says the same. */
const PATHS = {
  runs: 'M4 5h16v14H4zM4 9.500h16M8 5l-1.500 4.500M13 5l-1.500 4.500M18 5l-1.500 4.500',
  plus: 'M12 5v14M5 12h14',
  key: 'M14.500 9.500a4.500 4.500 0 1 0-2.700 4.100l1.700 1.400h2v2h2v2h3v-3.300l-6.300-4.500a4.400 4.400 0 0 0 .3-1.700zM9.500 9v.01',
  credits: 'M9 14a5 5 0 1 0 0-10 5 5 0 0 0 0 10zM15.500 10.100A5 5 0 1 1 10.100 15.600M8 7.500h1v3.500',
  user: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4.500 20a7.500 7.500 0 0 1 15 0',
  'sign-out': 'M10 4H5v16h5M15 8l4 4-4 4M19 12H9.500',
  sun: 'M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 2v2M12 20v2M4.900 4.900l1.400 1.400M17.700 17.700l1.400 1.400M2 12h2M20 12h2M4.900 19.100l1.400-1.400M17.700 6.300l1.400-1.400',
  moon: 'M20 14.500A8.500 8.500 0 0 1 9.500 4a8.500 8.500 0 1 0 10.500 10.500z',
  system: 'M3 5h18v11H3zM9 20h6M12 16v4',
  copy: 'M9 9h11v11H9zM15 9V4H4v11h5',
  check: 'M5 12.500l4.500 4.500L19 7.500',
  close: 'M6 6l12 12M18 6L6 18',
  alert: 'M12 4L2.500 20h19zM12 10v4.500M12 17.300v.01',
  info: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 11v5M12 8v.01',
  search: 'M10.500 17a6.500 6.500 0 1 0 0-13 6.500 6.500 0 0 0 0 13zM15.500 15.500L20 20',
  download: 'M12 4v11M7.500 11l4.500 4.500 4.500-4.500M5 20h14',
  upload: 'M12 15V4.500M7.500 9L12 4.500 16.500 9M5 20h14',
  more: 'M5.500 12v.01M12 12v.01M18.500 12v.01',
  rotate: 'M20 11A8 8 0 0 0 6 6.800L4 9M4 4v5h5M4 13a8 8 0 0 0 14 4.200l2-2.200M20 20v-5h-5',
  pause: 'M8.500 5v14M15.500 5v14',
  play: 'M7 4.500v15l12-7.500z',
  edit: 'M4 20h4L19.500 8.500l-4-4L4 16zM13 7l4 4',
  eye: 'M2.500 12S6 5.500 12 5.500 21.500 12 21.500 12 18 18.500 12 18.500 2.500 12 2.500 12zM12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6z',
  'eye-off':
    'M4 4l16 16M9.900 5.800A9 9 0 0 1 12 5.500c6 0 9.500 6.500 9.500 6.500a16 16 0 0 1-2.600 3.300M6.300 7.600A15.500 15.500 0 0 0 2.500 12S6 18.500 12 18.500a9 9 0 0 0 4.100-1M10 10a3 3 0 0 0 4.100 4.100',
  external: 'M13 5h6v6M19 5l-9 9M17 14v5H5V7h5',
  back: 'M19 12H5.500M11 6l-6 6 6 6',
  next: 'M9 5.500l6.500 6.500L9 18.500',
  down: 'M6 9l6 6 6-6',
  image: 'M4 4.500h16v15H4zM4 16l5-5 4.500 4.500 2.500-2.500 4 4M15.500 9v.01',
  video: 'M3 6h12v12H3zM15 10.500l6-3.500v10l-6-3.500',
  terminal: 'M3 4.500h18v15H3zM7 9l3 3-3 3M12.500 15H17',
  keyboard: 'M3 6.500h18v11H3zM7 10.500v.01M11 10.500v.01M15 10.500v.01M8 14h8M18.500 10.500v.01',
  filter: 'M4 6h16M7 12h10M10 18h4',
} as const

export type IconName = keyof typeof PATHS

export function Icon({ name, size = 16 }: { readonly name: IconName; readonly size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  )
}
