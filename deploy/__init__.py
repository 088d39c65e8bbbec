"""How the workbench is deployed and released: images, units, manifests, and programs that check them."""
